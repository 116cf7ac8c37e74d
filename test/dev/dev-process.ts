/** `berth dev` as a process, with the events that it prints. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { DevEvent } from '../../main/dev/report.ts';
import { freeze } from '../kit/machine/frozen-process.ts';
import { PseudoTerminal } from '../kit/machine/pseudo-terminal.ts';
import { untilOutput } from '../kit/machine/until-output.ts';

const entry = join(import.meta.dirname, '../../main/berth.ts');

interface DevOptions {
  readonly args?: readonly string[];
  readonly folder: string;
  readonly dockerHost: string;
  /** The folder for caches. */
  readonly caches: string;
}

/** `berth dev` in a terminal of 100 columns and 20 rows. */
export function devInTerminal(options: DevOptions): PseudoTerminal {
  const { args = [], folder } = options;
  const size = { columns: 100, rows: 20 };
  return new PseudoTerminal([process.execPath, entry, 'dev', ...args], {
    env: environment(options),
    cwd: folder,
    ...size,
  });
}

function environment({ dockerHost, caches }: DevOptions): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, XDG_CACHE_HOME: caches, DOCKER_HOST: dockerHost, DOCKER_BUILDKIT: '0' };
}

type EventOf<Name extends DevEvent['event']> = Extract<DevEvent, { event: Name }>;

export class DevProcess {
  readonly events: DevEvent[] = [];
  readonly ended: Promise<number | null>;
  readonly #child;
  #stderr = '';
  #onEvent: () => void = () => {};

  constructor(options: DevOptions) {
    const { args = [], folder } = options;
    const child = spawn(process.execPath, [entry, 'dev', '--json', ...args], {
      env: environment(options),
      cwd: folder,
    });
    this.#child = child;
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text));
    createInterface(child.stdout).on('line', (line) => {
      this.events.push(JSON.parse(line) as DevEvent);
      this.#onEvent();
    });
    this.ended = once(child, 'close').then(([code]) => code as number | null);
  }

  /** Waits for the first event of a kind after a position. */
  async event<Name extends DevEvent['event']>(
    name: Name,
    { after = 0, matches = () => true }: { after?: number; matches?: (event: EventOf<Name>) => boolean } = {},
  ): Promise<EventOf<Name>> {
    const isWanted = (each: DevEvent): each is EventOf<Name> => each.event === name && matches(each as EventOf<Name>);
    const found = await untilOutput(() => this.events.slice(after).find(isWanted), {
      onNext: (call) => (this.#onEvent = call),
      ended: this.ended,
    });
    if (found) return found;
    throw new Error(`No event "${name}" before the end: ${this.#stderr}`);
  }

  /** Freezes it until the returned function is called. */
  async freeze(): Promise<() => void> {
    return await freeze(this.#child);
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.#child.kill(signal);
    return await this.ended;
  }
}
