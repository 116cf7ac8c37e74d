/** The `docker` command: builds and pushes images for the development server. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { linesOf } from '../../core/text/lines.ts';
import { ConfigError } from '../../core/config/settings.ts';

/** The environment of `docker`. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface DockerOptions {
  readonly environment: Environment;
  /** Ends `docker` with SIGTERM. */
  readonly signal: AbortSignal;
  /** Called with each line of output as it arrives. */
  readonly onLine?: (line: string) => void;
}

/** `docker` failed. */
export class DockerFailure extends Error {
  override readonly name = 'DockerFailure';
  /** Its last lines of output. */
  readonly lines: readonly string[];

  constructor(message: string, lines: readonly string[]) {
    super(message);
    this.lines = lines;
  }
}

/** How many lines of output are kept: enough for compiler errors. */
const keptLines = 1_000;

/** Runs `docker` and returns its output lines, both streams in the order of arrival. Throws `DockerFailure`. */
export async function runDocker(args: readonly string[], options: DockerOptions): Promise<string[]> {
  const { environment, signal, onLine = () => {} } = options;
  const child = spawn('docker', args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'], signal });
  const lines: string[] = [];
  const read = async (stream: typeof child.stdout) => {
    for await (const written of linesOf(stream)) {
      const line = shownPart(written);
      lines.push(line);
      if (lines.length > keptLines) lines.shift();
      onLine(line);
    }
  };
  const [[code]] = await Promise.all([
    once(child, 'close') as Promise<[number | null]>,
    read(child.stdout),
    read(child.stderr),
  ]).catch((error: unknown) => {
    signal.throwIfAborted();
    throw isMissing(error) ? new ConfigError('The docker command is missing: install it, then start again') : error;
  });
  signal.throwIfAborted();
  if (code !== 0) throw new DockerFailure(`docker ${args[0] ?? ''} failed with exit code ${code}`, lines);
  return lines;
}

/** The socket of the engine that `docker` uses: DOCKER_HOST, or the socket of its current context. */
export async function engineOf(options: DockerOptions): Promise<string | undefined> {
  const named = options.environment['DOCKER_HOST'];
  if (named) return named;
  const [host] = await runDocker(['context', 'inspect', '--format', '{{.Endpoints.docker.Host}}'], options);
  return host?.trim() || undefined;
}

/** The last part of a line with carriage returns, which a terminal shows in the end. */
function shownPart(line: string): string {
  return line.split('\r').findLast((part) => part !== '') ?? '';
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
