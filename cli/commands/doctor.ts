/** `berth doctor`: checks why commands fail. */
import { stat } from 'node:fs/promises';
import { Command } from '@commander-js/extra-typings';
import { readLogins } from '../config/file.ts';
import { CliError, exitCodes, reportOf } from '../errors.ts';
import { safeText } from '../output/safe-text.ts';
import { runProgram } from '../program-runner.ts';
import { checkRegistry } from '../registry.ts';
import { accountNames } from '../session.ts';
import type { Session } from '../session.ts';
import { version } from '../version.ts';

interface Finding {
  readonly check: string;
  /** `warning`: some commands do not work. `skipped`: an earlier check has failed. */
  readonly status: 'ok' | 'warning' | 'error' | 'skipped';
  readonly message: string;
  readonly hint?: string | undefined;
}

interface Check {
  readonly name: string;
  /** Returns a description of the result. */
  readonly run: (session: Session) => Promise<string>;
  /** Whether a failure affects only some commands. */
  readonly optional?: boolean;
  /** The check that must succeed before this one. */
  readonly needs?: string;
}

const checks: readonly Check[] = [
  { name: 'configuration', run: configuration },
  { name: 'platform', run: platform },
  { name: 'clock', run: clock, needs: 'platform', optional: true },
  { name: 'log-in', run: logIn, needs: 'platform' },
  { name: 'account', run: account, needs: 'log-in' },
  { name: 'registry', run: checkRegistry, needs: 'account' },
  { name: 'docker', run: docker, optional: true },
  { name: 'git', run: git, optional: true },
];

export function doctorCommand(session: Session) {
  return new Command('doctor')
    .summary('check the requirements of commands')
    .description(
      'Checks the configuration, the platform, the log-in, the registry and Docker. Exits with 1 if a check fails.',
    )
    .action(async () => {
      const found = new Map<string, Finding>();
      for (const check of checks) {
        const finding = await findingOf(session, check, check.needs === undefined ? undefined : found.get(check.needs));
        found.set(check.name, finding);
        session.output.data(finding, findingText(session, finding));
      }
      if (Array.from(found.values()).some(({ status }) => status === 'error')) session.exitCode = exitCodes.error;
    });
}

async function findingOf(
  session: Session,
  { name, run, optional }: Check,
  needed: Finding | undefined,
): Promise<Finding> {
  if (needed && needed.status !== 'ok') return { check: name, status: 'skipped', message: `needs: ${needed.check}` };
  try {
    return { check: name, status: 'ok', message: await run(session) };
  } catch (error) {
    session.signal.throwIfAborted();
    const { message, hint } = reportOf(error);
    return { check: name, status: optional ? 'warning' : 'error', message, ...(hint !== undefined && { hint }) };
  }
}

function findingText({ output }: Session, { check, status, message, hint }: Finding): string {
  const { green, yellow, red, dim } = output.colors;
  const color = { ok: green, warning: yellow, error: red, skipped: dim }[status];
  const line = `${color(status.padEnd(7))}  ${check}: ${safeText(message)}`;
  return hint === undefined ? line : `${line}\n         ${safeText(hint)}`;
}

async function configuration({ loginsPath }: Session): Promise<string> {
  const found = await stat(loginsPath).catch(() => undefined);
  if (!found) return `there is no ${loginsPath} yet`;
  if ((found.mode & 0o077) === 0) {
    await readLogins(loginsPath);
    return loginsPath;
  }
  throw new CliError('Config', `Others can read ${loginsPath}, which has your tokens`, {
    hint: `chmod 600 ${loginsPath}`,
  });
}

async function platform(session: Session): Promise<string> {
  const { host, document } = await openApiDocument(session);
  const server = document?.info?.version;
  if (server === undefined) throw new CliError('UnexpectedResponse', `${host} does not answer as Berth's API`);
  return `${host}, version ${server}${server === version ? '' : ` (this command line: ${version})`}`;
}

/** What a server answers, which may be another one than Berth. */
interface OpenApiDocument {
  readonly info?: { readonly version?: string };
}

async function openApiDocument(
  session: Session,
): Promise<{ host: string; document: OpenApiDocument | null; headers: Headers }> {
  const host = await session.host();
  const signal = AbortSignal.any([session.signal, AbortSignal.timeout(10_000)]);
  const response = await fetch(`${host}/openapi.json`, { signal, redirect: 'manual' }).catch((error: unknown) => {
    session.signal.throwIfAborted();
    const hint = 'Is the platform running? --host or BERTH_HOST sets another address';
    throw new CliError('Unreachable', `No response from ${host}`, { hint, cause: error });
  });
  const document = (await response.json().catch(() => null)) as OpenApiDocument | null;
  return { host, document, headers: response.headers };
}

/** Tokens expire by the platform's clock, and TLS certificates by this machine's clock. */
const toleranceMs = 60_000;

async function clock(session: Session): Promise<string> {
  const { headers } = await openApiDocument(session);
  const differenceMs = Math.abs(Date.now() - Date.parse(headers.get('date') ?? ''));
  if (!(differenceMs > toleranceMs)) return 'the same as the platform';
  throw new CliError(
    'Clock',
    `This machine's clock differs from the platform's by ${Math.round(differenceMs / 1000)} s`,
  );
}

async function logIn(session: Session): Promise<string> {
  const { user, source } = await session.login();
  await accountNames(await session.client(), session.signal);
  return `${user ?? 'an access token'}, from ${source === 'file' ? session.loginsPath : source}`;
}

async function account(session: Session): Promise<string> {
  const name = await session.account();
  const names = await accountNames(await session.client(), session.signal);
  if (names.includes(name)) return name;
  throw new CliError('AccountNotFound', `The log-in is not valid for the account "${name}"`, {
    hint: `It is valid for: ${names.join(', ') || 'none'}`,
  });
}

async function docker({ io, signal }: Session): Promise<string> {
  const hint = 'Without Docker, "berth push --archive" pushes archives';
  const asked = runProgram('docker', ['version', '--format', '{{.Server.Version}}'], { env: io.env, signal });
  const { code, stdout, stderr } = await asked.catch((error: Error) => ({
    code: 127,
    stdout: '',
    stderr: error.message,
  }));
  if (code === 0) return stdout.trim();
  throw new CliError('NoDocker', stderr.trim().split('\n').at(-1) ?? 'docker does not work', { hint });
}

async function git({ io, signal }: Session): Promise<string> {
  return (await runProgram('git', ['--version'], { env: io.env, signal })).stdout.trim();
}
