/** `berth connect`. */
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { BerthError } from '../../client/index.ts';
import type { ConnectRequest, ConnectResponse } from '../../client/index.ts';
import { withExamples } from '../examples.ts';
import { openInBrowser } from '../open-in-browser.ts';
import { fields } from '../output/table.ts';
import { usageError } from '../errors.ts';
import { nonNegative, variable } from '../arguments.ts';
import type { Session } from '../session.ts';
import { waitUntilReady } from '../wait-until-ready.ts';

export interface ConnectOptions {
  readonly key?: string;
  readonly user?: string;
  readonly auth?: Record<string, unknown>;
  readonly spawn: boolean;
  readonly tag?: string;
  readonly cluster?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly maxIdleSeconds?: number;
  readonly lifetimeLimitSeconds?: number;
  readonly urlForm?: 'host' | 'path';
  readonly wait?: true;
  readonly timeout?: number;
  readonly open?: true;
}

export function connectCommand(session: Session) {
  const command = new Command('connect')
    .summary('get a URL to a backend')
    .description('Prints a URL to the backend that holds a key, or to a new backend of the service.')
    .argument('<service>', 'SERVICE, SERVICE/ENVIRONMENT or ACCOUNT/SERVICE/ENVIRONMENT')
    .option('-k, --key <key>', 'connect to the backend that holds the key, or spawn one that holds it')
    .option('-u, --user <name>', 'the user, which the backend gets in x-verified-username')
    .option('-a, --auth <json>', 'an object, which the backend gets in x-verified-user-data', jsonObject)
    .option('--no-spawn', 'fail if no running backend holds the key')
    .option('-t, --tag <tag>', 'the image of a new backend: a tag or a digest')
    .option(
      '-e, --env <name=value>',
      'a variable of a new backend; NAME alone: the value of this environment',
      variable(session),
    )
    .option('-c, --cluster <name>', 'the cluster of a new backend')
    .option('-i, --max-idle-seconds <seconds>', 'how long a new backend runs without connections', nonNegative)
    .option('-l, --lifetime-limit-seconds <seconds>', 'how long a new backend may run', nonNegative)
    .addOption(new Option('--url-form <form>', 'the form of the URL').choices(['host', 'path'] as const))
    .option('-w, --wait', 'wait until the backend is ready')
    .option('--timeout <seconds>', 'with --wait: how long to wait', nonNegative)
    .option('-o, --open', 'open the URL in the browser, which waits until the backend is ready')
    .action(async (service, options) => await connect(session, service, options));
  return withExamples(
    command,
    'connect draw --key room-1 --user ada --wait',
    `connect draw/staging --env LEVEL=3 --auth '{"admin":true}'`,
    'connect draw --open',
  );
}

/** Connects, and prints the URL. */
export async function connect(session: Session, name: string, options: ConnectOptions): Promise<void> {
  const { output, signal } = session;
  if (options.timeout !== undefined && !options.wait) throw usageError('--timeout needs --wait');
  const { service, environment } = await session.serviceAndEnvironment(name);
  const client = await session.client();
  const answer = await client
    .connect(service, requestOf(options), { environment, signal })
    .catch((error: unknown) => explain(error, name));
  const { backend_id: backend } = answer;
  // Printed before the wait, so that the user has the ID if the wait fails or is interrupted.
  if (options.wait) output.message(`${answer.spawned ? 'Spawned' : 'Found'} ${backend}, waiting until it is ready…`);
  const { status } = options.wait ? await waitUntilReady(session, backend, options.timeout) : answer;
  printConnection(session, { ...answer, status });
  if (!options.open) return;
  const opened = await openInBrowser(answer.ready_url || answer.url, session.io.env);
  if (!opened) output.warning('No browser was found: open the URL yourself');
}

function printConnection({ output }: Session, answer: ConnectResponse): void {
  const { backend_id, status, spawned, url, ready_url, status_url, secret_token, bearer_token } = answer;
  output.data(
    answer,
    fields({
      url,
      backend: backend_id,
      status,
      spawned,
      ready_url: ready_url || undefined,
      status_url,
      secret_token,
      bearer_token,
    }),
  );
}

function requestOf(options: ConnectOptions): ConnectRequest {
  const { key, user, auth, tag, cluster, env, maxIdleSeconds, lifetimeLimitSeconds, urlForm } = options;
  const spawn = {
    ...(tag !== undefined && { tag }),
    ...(cluster !== undefined && { cluster }),
    ...(maxIdleSeconds !== undefined && { max_idle_seconds: maxIdleSeconds }),
    ...(lifetimeLimitSeconds !== undefined && { lifetime_limit_seconds: lifetimeLimitSeconds }),
    ...(env && { executable: { env } }),
  };
  const isConfigured = Object.keys(spawn).length > 0;
  if (!options.spawn && isConfigured)
    throw usageError('--no-spawn starts no backend, so options for a new backend are not allowed');
  if (!options.spawn && key === undefined) throw usageError('--no-spawn needs --key');
  return {
    ...(key !== undefined && { key }),
    ...(user !== undefined && { user }),
    ...(urlForm && { url_form: urlForm }),
    ...(auth && { auth: auth as NonNullable<ConnectRequest['auth']> }),
    ...(options.spawn ? isConfigured && { spawn } : { spawn: false }),
  };
}

/** Adds a hint to the error, because a user may write ACCOUNT/SERVICE where SERVICE/ENVIRONMENT is expected. */
function explain(error: unknown, name: string): never {
  if (error instanceof BerthError && error.code === 'ServiceNotFound' && name.split('/').length === 2) {
    const { status, id } = error;
    throw new BerthError(
      error.code,
      `${error.message} ("${name}" means SERVICE/ENVIRONMENT; use --account to name an account)`,
      { status, id },
    );
  }
  throw error;
}

function jsonObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {}
  throw new InvalidArgumentError('It is not a JSON object.');
}
