/** `berth login` and `berth logout`. */
import { text } from 'node:stream/consumers';
import { Command, Option } from '@commander-js/extra-typings';
import type { BerthClient } from '../../client/index.ts';
import { BerthError } from '../../client/index.ts';
import { isPrivate } from '../config/host.ts';
import { readLogins, writeLogins } from '../config/file.ts';
import type { Login } from '../config/file.ts';
import { CliError, notFound, usageError } from '../errors.ts';
import { withExamples } from '../examples.ts';
import { openInBrowser } from '../open-in-browser.ts';
import { accountNames, newClient } from '../session.ts';
import type { Session } from '../session.ts';

export function loginCommand(session: Session) {
  const command = new Command('login')
    .summary('log in to a platform')
    .description(
      'Logs in with a browser, or with an access token from standard input. The platform becomes the default of all commands. A log-in that it replaces ends.',
    )
    .argument('[account]', 'the default account of commands')
    .option('--token-stdin', 'read an access token from standard input')
    .option('--no-browser', 'only print the address of the page')
    .addOption(new Option('-t, --token <token>').hideHelp())
    .action(async (account, options) => {
      if (options.token !== undefined) {
        throw usageError(
          '--token would show the token to every user of this machine',
          'Use --token-stdin: berth login --token-stdin < FILE',
        );
      }
      await login(session, { ...options, account });
    });
  return withExamples(command, 'login', 'login --host https://berth.example', 'login --token-stdin < token-file');
}

export function logoutCommand(session: Session) {
  return new Command('logout')
    .summary('forget the log-in at a platform')
    .description(
      'Ends the log-in at the platform and deletes it from this machine. An access token stays valid until it is revoked.',
    )
    .action(async () => await logout(session));
}

/** Short, because the user waits, and the result does not depend on it. */
const endTimeoutMs = 5000;

interface LoginOptions {
  readonly account: string | undefined;
  readonly tokenStdin?: true | undefined;
  readonly browser: boolean;
}

async function login(session: Session, options: LoginOptions): Promise<void> {
  const host = await session.host();
  if (!isPrivate(host)) session.output.warning(`The connection to ${host} is not encrypted: others can read the token`);
  const login = options.tokenStdin ? await tokenFromInput(session) : await browserLogin(session, host, options.browser);
  const account = await stored(session, host, login, options.account).catch(async (error: unknown) => {
    // It would stay valid for months, and no command could end it.
    await ended(host, login, AbortSignal.timeout(endTimeoutMs));
    throw error;
  });
  const as = account ?? login.user ?? 'an administrator';
  session.output.done({ host, account: account ?? null, user: login.user ?? null }, `Logged in to ${host} as ${as}`);
  if (session.io.env['BERTH_TOKEN'])
    session.output.warning('BERTH_TOKEN is set: commands use it instead of this log-in');
}

/** Stores a log-in with its default account, which it returns. Ends the log-in that it replaces. */
// oxlint-disable-next-line max-params -- the log-in, and what it is for
async function stored(
  session: Session,
  host: string,
  login: Login,
  wanted: string | undefined,
): Promise<string | undefined> {
  const account = await chosenAccount(session, newClient(host, login.token), wanted);
  const { hosts } = await readLogins(session.loginsPath);
  const complete: Login = { ...login, ...(account !== undefined && { account }) };
  await writeLogins(session.loginsPath, { current: host, hosts: { ...hosts, [host]: complete } });
  const replaced = Object.hasOwn(hosts, host) ? hosts[host] : undefined;
  const problem = replaced && (await ended(host, replaced, AbortSignal.timeout(endTimeoutMs)));
  if (problem) session.output.warning(`The platform could not end the previous log-in: ${problem.message}`);
  return account;
}

async function tokenFromInput({ io }: Session): Promise<Login> {
  const token = (await text(io.stdin)).trim();
  if (token === '' || /\s/.test(token))
    throw usageError('Standard input has no access token', 'Use --token-stdin < FILE');
  return { token };
}

/** Opens a page that shows a code to the user, and exchanges the code for a log-in. */
async function browserLogin(session: Session, host: string, mayOpen: boolean): Promise<Login> {
  const { prompts, output, signal } = session;
  const client = await session.openClient();
  if (!prompts.canAsk) {
    throw usageError('There is no terminal on which to ask for the code', 'Use --token-stdin with an access token');
  }
  const { token } = await client.logIns.beginCli({ signal });
  const page = `${host}/cli-login/${token}`;
  output.message(`Open this page, and confirm the log-in:\n\n  ${page}\n`);
  if (mayOpen) await openInBrowser(page, session.io.env);
  output.message('Waiting for the page…');
  if ((await client.cliLoginStatus(token, { signal })) === 'expired') {
    throw new CliError('CliLoginNotFound', 'The log-in was not confirmed in time', {
      hint: 'Run "berth login" again',
    });
  }
  return await completed(session, client, token);
}

/** Asks for the code until it is correct. The platform allows a few attempts. */
async function completed({ prompts, output, signal }: Session, client: BerthClient, token: string): Promise<Login> {
  for (;;) {
    const code = await prompts.text({
      message: 'Code on the page',
      instead: '--token-stdin',
      validate: (given) => (/^\s*\d[\d\s]*$/.test(given) ? undefined : 'The code has six digits'),
    });
    try {
      const made = await client.logIns.completeCli(token, code.replaceAll(/\s/g, ''), { signal });
      return { token: made.token, user: made.user_email, session: made.uuid };
    } catch (error) {
      if (!(error instanceof BerthError && error.code === 'Forbidden')) throw error;
      output.warning(error.message);
    }
  }
}

/** Chooses the default account, which also checks the token. `undefined`: the log-in has no account. */
async function chosenAccount(
  session: Session,
  client: BerthClient,
  given: string | undefined,
): Promise<string | undefined> {
  const names = await accountNames(client, session.signal);
  const wanted = given ?? session.namedAccount;
  if (wanted !== undefined) {
    if (names.includes(wanted)) return wanted;
    throw notFound('AccountNotFound', `The log-in is not valid for the account "${wanted}"`);
  }
  if (names.length <= 1) return names[0];
  const message = `The log-in is valid for ${names.length} accounts. Which one should commands use?`;
  return await session.prompts.select({ message, choices: names, instead: '--account NAME' });
}

async function logout(session: Session): Promise<void> {
  const { hosts, current } = await readLogins(session.loginsPath);
  const host = await session.host();
  const login = Object.hasOwn(hosts, host) ? hosts[host] : undefined;
  if (!login) {
    session.output.done({ host, logged_out: false }, `You are not logged in to ${host}`);
    return;
  }
  const problem = await ended(host, login, session.signal);
  session.signal.throwIfAborted();
  const others = Object.fromEntries(Object.entries(hosts).filter(([each]) => each !== host));
  await writeLogins(session.loginsPath, {
    ...(current !== undefined && current !== host && { current }),
    hosts: others,
  });
  if (problem) session.output.warning(`The platform could not end the log-in: ${problem.message}`);
  session.output.done({ host, logged_out: true }, `Logged out of ${host}`);
}

/** Ends the log-in at the platform. Returns the error if that fails, because this machine forgets the log-in in any case. */
async function ended(host: string, { token, session }: Login, signal: AbortSignal): Promise<Error | undefined> {
  if (session === undefined) return undefined;
  try {
    await newClient(host, token).logIns.logOut(session, { signal });
    return undefined;
  } catch (error) {
    const hasEnded = error instanceof BerthError && (error.status === 401 || error.status === 404);
    return hasEnded ? undefined : (error as Error);
  }
}
