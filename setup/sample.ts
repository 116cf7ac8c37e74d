/**
 * The sample application of `npm start`. A separate process pushes it and starts its first session, so that its memory is freed when it
 * ends: packing the image takes a hundred megabytes, and a process that has used `fetch` never unloads it.
 */
import { join } from 'node:path';
import type { Config } from '../main/config/config.ts';
import type { WholePlatform } from '../main/platform.ts';
import { tryCommand } from './command.ts';
import type { DockerEngine } from './docker-engine.ts';
import type { Result, SampleUrls } from './summary.ts';
import type { Terminal } from './terminal.ts';

const program = join(import.meta.dirname, 'sample-program.ts');

/** The task of the program. */
export interface SampleTask {
  readonly apiUrl: string;
  readonly registry: string;
  readonly proxyUrl: string;
  readonly account: string;
  readonly tokenFile: string;
  readonly dockerHost: string;
  /** Whether sessions mount a folder of this machine. */
  readonly isMounted: boolean;
}

/** A line that the program prints: its current step, or at the end the URLs. */
export type SampleLine = { readonly step: string } | { readonly urls: SampleUrls };

interface SampleOptions {
  readonly platform: WholePlatform;
  readonly config: Config;
  readonly engine: DockerEngine;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

/** Starts the sample application. Returns the problem if it cannot be started; the platform runs without it. */
export async function startSample(options: SampleOptions): Promise<Result['sample']> {
  const { platform, engine } = options;
  if (!engine.running) return { problem: engine.reason };
  if (!platform.worker.running) return { problem: platform.worker.reason };
  if (engine.noClient !== undefined) return { problem: engine.noClient };
  try {
    return await pushAndConnect(options, engine.host);
  } catch (error) {
    return {
      problem: `The sample application did not start: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

async function pushAndConnect(
  { platform: { urls, account }, config, terminal, signal }: SampleOptions,
  dockerHost: string,
): Promise<SampleUrls> {
  const task: SampleTask = {
    apiUrl: urls.api,
    registry: urls.registry,
    proxyUrl: urls.proxy,
    account: account.name,
    tokenFile: account.tokenFile,
    dockerHost,
    isMounted: config.mountFolder !== 'off',
  };
  return await terminal.withProgress(
    'Pushing the sample application and starting its first session',
    async (onStep) => {
      let sample: SampleUrls | undefined;
      const onLine = (text: string) => {
        const line = JSON.parse(text) as SampleLine;
        if ('step' in line) onStep(line.step);
        else sample = line.urls;
      };
      const { code, stderr } = await tryCommand(process.execPath, [program, JSON.stringify(task)], { onLine, signal });
      if (code !== 0 || !sample) throw new Error(stderr.trim() || `its program ended with ${code}`);
      return sample;
    },
  );
}
