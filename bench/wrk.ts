/** The load generator wrk. */
import { runCommand } from '../setup/command.ts';
import { proxyProgram } from '../test/kit/packages/proxy-programs.ts';

export interface WrkLoad {
  readonly url: string;
  readonly seconds: number;
  readonly connections: number;
  readonly threads?: number;
  /** More arguments. */
  readonly args?: readonly string[];
  /** Absent: any core. */
  readonly core?: number;
}

export interface WrkReport {
  readonly requests: number;
  /** All that wrk printed. */
  readonly said: string;
}

/** Sends requests for so many seconds. Throws if one failed. */
export async function runWrk({ url, seconds, connections, threads = 1, args = [], core }: WrkLoad): Promise<WrkReport> {
  const wrk = await proxyProgram('wrk');
  if ('missing' in wrk) throw new Error(wrk.missing);
  const load = ['-t', `${threads}`, '-c', `${connections}`, '-d', `${seconds}s`, '--timeout', '30s', ...args, url];
  const options = { env: wrk.env };
  const said =
    core === undefined
      ? await runCommand(wrk.path, load, options)
      : await runCommand('taskset', ['-c', `${core}`, wrk.path, ...load], options);
  const problem = /(?:Socket errors|Non-2xx).*/.exec(said)?.[0];
  if (problem !== undefined) throw new Error(problem);
  const [, requests = ''] = /(\d+) requests in/.exec(said) ?? [];
  return { requests: Number(requests), said };
}
