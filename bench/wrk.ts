/** The load generator wrk. */
import { runCommand } from '../setup/command.ts';
import { proxyProgram } from '../test/kit/packages/proxy-programs.ts';

export interface WrkLoad {
  readonly url: string;
  readonly seconds: number;
  readonly connections: number;
  readonly threads?: number;
  /** Additional arguments. */
  readonly args?: readonly string[];
  /** The core of wrk. Default: any. */
  readonly core?: number;
}

export interface WrkReport {
  readonly requests: number;
  /** The output of wrk. */
  readonly output: string;
}

/** Sends requests for `seconds`. Throws if a request failed. */
export async function runWrk({ url, seconds, connections, threads = 1, args = [], core }: WrkLoad): Promise<WrkReport> {
  const wrk = await proxyProgram('wrk');
  if ('missing' in wrk) throw new Error(wrk.missing);
  const load = ['-t', `${threads}`, '-c', `${connections}`, '-d', `${seconds}s`, '--timeout', '30s', ...args, url];
  const options = { env: wrk.env };
  const output =
    core === undefined
      ? await runCommand(wrk.path, load, options)
      : await runCommand('taskset', ['-c', `${core}`, wrk.path, ...load], options);
  const problem = /(?:Socket errors|Non-2xx).*/.exec(output)?.[0];
  if (problem !== undefined) throw new Error(problem);
  const [, requests = ''] = /(\d+) requests in/.exec(output) ?? [];
  return { requests: Number(requests), output };
}
