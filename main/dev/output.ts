/** The output of the development server: a screen on a terminal, lines of text, or lines of JSON. */
import type { openLog } from '../../core/log/log.ts';
import type { Environment } from './docker.ts';
import { newReport } from './report.ts';
import type { Report } from './report.ts';
import { openScreen } from './screen/screen.ts';
import type { DevOutput } from './settings.ts';

/** The destination of the platform's log; `undefined`: standard error. */
export type DevLog = Parameters<typeof openLog>[1];

interface Output extends Disposable {
  readonly report: Report;
  readonly log: DevLog;
}

export function openOutput(wanted: DevOutput, env: Environment): Output {
  const { stdin, stdout } = process;
  const isTerminal = stdin.isTTY && stdout.isTTY && env['TERM'] !== 'dumb';
  if (wanted !== 'screen' || !isTerminal) {
    const report = newReport((line) => void stdout.write(`${line}\n`), wanted === 'json');
    return { report, log: undefined, [Symbol.dispose]: () => {} };
  }
  const screen = openScreen({
    stdin,
    stdout,
    colors: !env['NO_COLOR'],
    onInterrupt: () => process.kill(process.pid, 'SIGINT'),
  });
  const log = { write: (line: string) => screen.report({ event: 'warning', problem: messageIn(line) }) };
  return { report: screen.report, log, [Symbol.dispose]: () => screen[Symbol.dispose]() };
}

/** The message and the error in a line of the platform's log. */
function messageIn(line: string): string {
  const { msg, err } = JSON.parse(line) as { msg?: string; err?: { message?: string } };
  return [msg, err?.message].filter(Boolean).join(': ') || line.trim();
}
