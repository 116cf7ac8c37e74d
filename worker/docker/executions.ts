/** Runs programs in a running container, beside the container's own program. */
import type Docker from 'dockerode';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Readable } from 'node:stream';
import { abortable } from '../../core/async/abortable.ts';
import { callEngine } from './engine-error.ts';
import { headBytes, splitFrames } from './log-frames.ts';

export interface Execution {
  readonly command: readonly string[];
  /** `user:group`. Default: the user of the container. */
  readonly user?: string;
  /** Default: the working directory of the container. */
  readonly folder?: string;
}

export interface ExecutionResult {
  /** `null` if the engine does not report it. */
  readonly exitCode: number | null;
  /** The beginning of its standard output and standard error. */
  readonly output: string;
}

/** The rest is not read, because a container can write any amount. */
const maxOutputBytes = 64 * 1024;

/** The engine may send the end of the output before it knows the exit code: on a busy machine, seconds before. */
const exitCodeWithinMs = 10_000;
const firstPauseMs = 25;

/**
 * Runs a program to its end. Throws `refused` if it cannot be started or the container does not run, and the signal's reason when
 * it aborts: the program continues then.
 */
export async function execute(
  docker: Docker,
  container: string,
  { execution, signal }: { readonly execution: Execution; readonly signal: AbortSignal },
): Promise<ExecutionResult> {
  const created = await create(docker, container, execution, true);
  signal.throwIfAborted();
  const stream = (await callEngine(() => created.start({ hijack: false, stdin: false }))) as unknown as Readable;
  const abort = () => stream.destroy(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  // It may have aborted during the start.
  if (signal.aborted) abort();
  try {
    const output = await readOutput(stream);
    return { output, exitCode: await exitCodeOf(created, signal) };
  } finally {
    signal.removeEventListener('abort', abort);
    stream.destroy();
  }
}

/** Starts a program that runs as long as its container. Throws `refused` if it cannot be started. */
export async function executeInBackground(docker: Docker, container: string, execution: Execution): Promise<void> {
  const created = await create(docker, container, execution, false);
  const stream = (await callEngine(() => created.start({ Detach: true }))) as unknown as Readable;
  stream.resume();
}

async function create(docker: Docker, container: string, execution: Execution, attached: boolean) {
  const { command, user, folder } = execution;
  const options: Docker.ExecCreateOptions = {
    Cmd: [...command],
    AttachStdout: attached,
    AttachStderr: attached,
    ...(user !== undefined && { User: user }),
    ...(folder !== undefined && { WorkingDir: folder }),
  };
  return await callEngine(() => docker.getContainer(container).exec(options));
}

/** Reads the text of standard output and standard error. The last frame may be cut. */
async function readOutput(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (bytes >= maxOutputBytes) continue;
    chunks.push(chunk);
    bytes += chunk.length;
  }
  const { frames, rest } = splitFrames(Buffer.concat(chunks));
  return Buffer.concat([...frames.map(({ payload }) => payload), rest.subarray(headBytes)]).toString();
}

async function exitCodeOf(created: Docker.Exec, signal: AbortSignal): Promise<number | null> {
  for (let waitedMs = 0, pauseMs = firstPauseMs; waitedMs < exitCodeWithinMs; waitedMs += pauseMs, pauseMs *= 1.5) {
    const { Running, ExitCode } = await callEngine(() => created.inspect());
    if (!Running && ExitCode !== null) return ExitCode;
    await abortable(sleep(pauseMs), signal);
  }
  return null;
}
