/** What commands share: the platform, the account, the client, and what is printed. */
import type { ReadStream, WriteStream } from 'node:tty';
import { BerthClient } from '../client/index.ts';
import { hostUrl, defaultHost } from './config/host.ts';
import { loginsPath, readLogins } from './config/file.ts';
import type { Environment, Login } from './config/file.ts';
import { CliError, exitCodes, usageError } from './errors.ts';
import { Output } from './output/output.ts';
import { Prompts } from './prompts.ts';
import { version } from './version.ts';

/** The process, as commands see it. */
export interface Io {
  readonly env: Environment;
  readonly stdin: ReadStream;
  readonly stdout: WriteStream;
  readonly stderr: WriteStream;
  readonly cwd: string;
}

/** The options that every command has. */
export interface GlobalOptions {
  readonly json?: boolean | undefined;
  readonly host?: string | undefined;
  readonly account?: string | undefined;
  /** `false`: never ask. */
  readonly input?: boolean | undefined;
}

/** A log-in at a platform. */
export interface ActiveLogin extends Login {
  readonly host: string;
  /** Where the token comes from. */
  readonly source: 'BERTH_TOKEN' | 'file';
}

export interface ServiceName {
  /** `<account>/<service>`. */
  readonly service: string;
  readonly environment: string | undefined;
}

export class Session {
  readonly io: Io;
  /** Aborts when a signal has ended the command. */
  readonly signal: AbortSignal;
  /** What the process exits with when the command has not failed. */
  exitCode: number = exitCodes.success;
  #globals: GlobalOptions = {};
  #output: Output;
  #client: BerthClient | undefined;
  #account: string | undefined;

  constructor(io: Io, signal: AbortSignal) {
    this.io = io;
    this.signal = signal;
    this.#output = new Output({ ...io, json: false });
  }

  /** Called with the options before the command runs. */
  configure(globals: GlobalOptions): void {
    this.#globals = globals;
    this.#output = new Output({ ...this.io, json: globals.json ?? false });
  }

  get output(): Output {
    return this.#output;
  }

  get prompts(): Prompts {
    return new Prompts(this.io, this.signal, this.#globals.input !== false);
  }

  /** The file with the log-ins. */
  get loginsPath(): string {
    return loginsPath(this.io.env);
  }

  /** The address of the platform: `--host`, `BERTH_HOST`, that of the last log-in, or this machine's. */
  async host(): Promise<string> {
    if (this.#globals.host !== undefined) return hostUrl(this.#globals.host, '--host');
    const fromEnv = this.io.env['BERTH_HOST'];
    if (fromEnv) return hostUrl(fromEnv, 'BERTH_HOST');
    return (await readLogins(this.loginsPath)).current ?? defaultHost;
  }

  /** The log-in at the platform; `undefined` if there is none. A stored token is used for its own platform only. */
  async findLogin(): Promise<ActiveLogin | undefined> {
    const host = await this.host();
    const token = this.io.env['BERTH_TOKEN']?.trim();
    if (token) return { host, token, source: 'BERTH_TOKEN' };
    const { hosts } = await readLogins(this.loginsPath);
    const login = Object.hasOwn(hosts, host) ? hosts[host] : undefined;
    return login && { ...login, host, source: 'file' };
  }

  async login(): Promise<ActiveLogin> {
    const login = await this.findLogin();
    if (login) return login;
    throw new CliError('Unauthorized', `You are not logged in to ${await this.host()}`, {
      exitCode: exitCodes.authentication,
      hint: 'Log in with "berth login", or set BERTH_TOKEN to an access token',
    });
  }

  async client(): Promise<BerthClient> {
    const { host, token } = await this.login();
    this.#client ??= newClient(host, token);
    return this.#client;
  }

  /** A client without a log-in. */
  async openClient(): Promise<BerthClient> {
    return newClient(await this.host());
  }

  /** The account: `--account`, `BERTH_ACCOUNT`, that of the log-in, or the only one that the token is valid for. */
  async account(): Promise<string> {
    this.#account ??= this.namedAccount ?? (await this.#accountOfLogin());
    return this.#account;
  }

  /** The account of commands that name none, if it is known without a request. */
  async defaultAccount(): Promise<string | undefined> {
    return this.namedAccount ?? accountOf(await this.login());
  }

  /** The account that the command line or the environment names. */
  get namedAccount(): string | undefined {
    return this.#globals.account ?? (this.io.env['BERTH_ACCOUNT'] || undefined);
  }

  /** The service that a person means by `draw` or `acme/draw`. */
  async service(name: string): Promise<string> {
    const [first = '', second, ...rest] = name.split('/');
    if (rest.length > 0 || first === '' || second === '')
      throw usageError(`"${name}" is no service, use SERVICE or ACCOUNT/SERVICE`);
    return second === undefined ? `${await this.account()}/${first}` : `${first}/${second}`;
  }

  /** The service and environment that a person means by `draw`, `draw/staging` or `acme/draw/staging`. */
  async serviceAndEnvironment(name: string): Promise<ServiceName> {
    const parts = name.split('/');
    if (parts.length > 3 || parts.includes('')) {
      throw usageError(`"${name}" is no service, use SERVICE, SERVICE/ENVIRONMENT or ACCOUNT/SERVICE/ENVIRONMENT`);
    }
    const [environment, service = '', account] = parts.length === 1 ? [undefined, name] : parts.toReversed();
    return { service: `${account ?? (await this.account())}/${service}`, environment };
  }

  async #accountOfLogin(): Promise<string> {
    const own = accountOf(await this.login());
    if (own !== undefined) return own;
    const names = await accountNames(await this.client(), this.signal);
    const [only] = names;
    if (only !== undefined && names.length === 1) return only;
    if (only === undefined) throw new CliError('NoAccount', 'The log-in is not valid for any account');
    throw usageError(
      `The log-in is valid for the accounts ${names.join(', ')}`,
      'Choose one with --account or BERTH_ACCOUNT',
    );
  }
}

/** The account of a log-in: the chosen one, or the start of an access token. */
function accountOf({ account, token }: Login): string | undefined {
  return account ?? /^(.+)\.[^.]+$/.exec(token)?.[1];
}

/** The accounts that a client's token is valid for. */
export async function accountNames(client: BerthClient, signal: AbortSignal): Promise<string[]> {
  const { accounts } = await client.call('listAccounts', { path: undefined }, { signal });
  return accounts.map(({ name }) => name);
}

/** A client whose requests say which program sends them: the page that confirms a log-in shows it. */
export function newClient(url: string, token?: string): BerthClient {
  const headers = { 'user-agent': `berth-cli/${version} (${process.platform}; Node ${process.versions.node})` };
  return new BerthClient({
    url,
    token,
    // A person waits: two seconds are enough for a platform that restarts a process.
    retries: 3,
    fetch: (input, init) =>
      fetch(input, { ...init, headers: { ...(init?.headers as Record<string, string>), ...headers } }),
  });
}
