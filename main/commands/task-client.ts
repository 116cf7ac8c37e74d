/** Runs a task in the running platform, or in this process if no platform runs. */
import type { IncomingMessage } from 'node:http';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { request } from '../../core/http/node-http.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { ConfigError } from '../../core/config/settings.ts';
import { taskPath } from '../../core/http/operations.ts';
import type { Log } from '../../core/log/log.ts';
import { openMetrics } from '../../core/metrics/metrics.ts';
import { StoreError } from '../../core/store/store.ts';
import { AccountQuotas, GarbageCollector, GcBusyError } from '../../registry/index.ts';
import type { Config } from '../config/config.ts';
import { openDataFolder } from '../process/data-folder.ts';
import type { DataFolder } from '../process/data-folder.ts';
import { reachableHostPort } from '../process/listener.ts';
import { openStorage } from '../drivers.ts';
import { fitHeapToBuffers } from '../process/heap.ts';
import { tasksOf, tasksToken } from './registry-tasks.ts';
import type { TaskName } from './registry-tasks.ts';
import { gcSettings, registryLimits } from '../components/registry.ts';

export interface TaskRequest {
  readonly config: Config;
  readonly log: Log;
  readonly name: TaskName;
  readonly query: URLSearchParams;
  readonly signal: AbortSignal;
}

/** The options that all tasks share. */
export interface CommandRequest extends Omit<TaskRequest, 'name' | 'query'> {
  /** Whether to write the events themselves, as lines of JSON. */
  readonly json: boolean;
  readonly write: (line: string) => void;
}

/** Runs a task and yields its events. Throws a `ConfigError` that says what to do if the task cannot run. */
export async function* requestTask(task: TaskRequest): AsyncGenerator<unknown, void, undefined> {
  const { config } = task;
  const exists = await stat(resolve(config.dataFolder)).catch(() => undefined);
  if (!exists) throw new ConfigError(`BERTH_DATA_FOLDER: There is nothing at ${resolve(config.dataFolder)}`);
  const folder = await openDataFolder(config.dataFolder, config.secretFile);
  const answer = await requestFromProcess(task, folder);
  if (answer) yield* linesOf(answer, task.signal);
  else yield* runHere(task, folder);
}

/** Requests the task from a running process. `undefined` if no process runs, or if the process has no registry. */
async function requestFromProcess(
  { config, name, query, signal }: TaskRequest,
  { secret }: DataFolder,
): Promise<IncomingMessage | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage | undefined>();
  const options = {
    method: 'POST',
    headers: { authorization: `Bearer ${tasksToken(secret)}` },
    signal,
    agent: false,
  };
  // Not `fetch`: it fails when no data arrives for five minutes, and a task may have nothing to report for that long.
  const sent = request(`${operationsUrl(config)}${taskPath}${name}?${query.toString()}`, options, resolve);
  sent.once('error', (error: Error & { code?: string }) => {
    if (error.code === 'ECONNREFUSED') resolve(undefined);
    else reject(error);
  });
  sent.end();
  const answer = await promise;
  if (answer?.statusCode === 200) return answer;
  const problem = answer && (await text(answer));
  if (!answer || answer.statusCode === 404) return undefined;
  throw new ConfigError(`${operationsUrl(config)} answers ${answer.statusCode}: ${problem}`);
}

async function* linesOf(answer: IncomingMessage, signal: AbortSignal): AsyncGenerator<unknown, void, undefined> {
  for await (const line of createInterface({ input: answer, signal })) yield JSON.parse(line);
  if (!answer.complete) throw new ConfigError('The platform stopped before the task was completed');
}

async function* runHere(task: TaskRequest, folder: DataFolder): AsyncGenerator<unknown, void, undefined> {
  const { config, log, name, query, signal } = task;
  await using opening = new AsyncDisposableStack();
  const storage = await openOwnStorage(task, folder, opening);
  const gc = gcSettings(config);
  const deps = { ...storage, clock: systemClock, log, metrics: openMetrics(), gc };
  const collector = opening.use(new GarbageCollector(deps));
  const quotas = new AccountQuotas({ ...storage, limits: registryLimits(config) });
  try {
    yield* tasksOf({ collector, quotas })[name](query, signal);
  } catch (error) {
    throw error instanceof GcBusyError ? new ConfigError(error.message) : error;
  }
}

async function openOwnStorage({ config, log }: TaskRequest, { path }: DataFolder, opening: AsyncDisposableStack) {
  try {
    const { store, reserve, images } = await openStorage({ config, log, folder: path, isPulledFrom: false }, opening);
    if (config.blobs === 'gridfs') fitHeapToBuffers();
    return { store, reserve, ...images };
  } catch (error) {
    if (!(error instanceof StoreError && error.code === 'locked')) throw error;
    const hint = `its registry is not at ${operationsUrl(config)}: set BERTH_OPERATIONS_HOST and _PORT to its values`;
    throw new ConfigError(`${error.message}, and ${hint}`, { cause: error });
  }
}

function operationsUrl({ operationsHost, operationsPort }: Config): string {
  return `http://${reachableHostPort(operationsHost, operationsPort)}`;
}

/** Writes an event of a task, as JSON or as a sentence. */
export function writeEvent({ json, write }: CommandRequest, line: unknown, sentence: string | undefined): void {
  if (json) write(JSON.stringify(line));
  else write(sentence ?? messageOf(line));
}

/** The error message of a task that failed in another process. */
function messageOf(line: unknown): string {
  const isError = typeof line === 'object' && line !== null && 'message' in line;
  return isError ? String(line.message) : `Unknown event: ${JSON.stringify(line)}`;
}
