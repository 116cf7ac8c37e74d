/** The state that commands share: the platform, the account, the client and the output. */
import type { ReadStream, WriteStream } from 'node:tty';
import { BerthClient } from '../client/index.ts';
import { collect } from './collect.ts';
import { hostUrl, defaultHost } from './config/host.ts';
import { loginsPath, readLogins } from './config/file.ts';
import type { Environment, Login } from './config/file.ts';
import { CliError, exitCodes, usageError } from './errors.ts';
import { Output } from './output/output.ts';
import { Prompts } from './prompts.ts';
import { version } from './version.ts';

/** The environment and the streams of the process. */
export interface Io {
  readonly env: Environment;
  readonly stdin: ReadStream;
  readonly stdout: WriteStream;
  readonly stderr: WriteStream;
  readonly cwd: string;
}

/** The options of every command. */
export interface GlobalOptions {
  readonly json?: boolean | undefined;
  readonly host?: string | undefined;
  readonly account?: string | undefined;
  /** `false`: never ask questions. */
  readonly input?: boolean | undefined;
}

/** A log-in at a platform. */
export interface ActiveLogin extends Login {
  readonly host: string;
  /** The source of the token. */
  readonly source: 'BERTH_TOKEN' | 'file';
}

export interface ServiceName {
  /** `<account>/<service>`. */
  readonly service: string;
  readonly environment: string | undefined;
}

export class Session {
  readonly io: Io;
  /** Aborts when a signal stops the command. */
  readonly signal: AbortSignal;
  /** The exit code of the process if the command throws no error. */
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

  /** Sets the global options. Called before the command runs. */
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

  /** The address of the platform: `--host`, `BERTH_HOST`, the platform of the last log-in, or the default of this machine. */
  async host(): Promise<string> {
    if (this.#globals.host !== undefined) return hostUrl(this.#globals.host, '--host');
    const fromEnv = this.io.env['BERTH_HOST'];
    if (fromEnv) return hostUrl(fromEnv, 'BERTH_HOST');
    return (await readLogins(this.loginsPath)).current ?? defaultHost;
  }

  /** The log-in at the platform; `undefined` if there is none. A stored token is only used for its own platform. */
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

  /** The account: `--account`, `BERTH_ACCOUNT`, the account of the log-in, or the only account that the token is valid for. */
  async account(): Promise<string> {
    this.#account ??= this.namedAccount ?? (await this.#accountOfLogin());
    return this.#account;
  }

  /** The default account, if it can be determined without a request. */
  async defaultAccount(): Promise<string | undefined> {
    return this.namedAccount ?? accountOf(await this.login());
  }

  /** The account from the command line or the environment. */
  get namedAccount(): string | undefined {
    return this.#globals.account ?? (this.io.env['BERTH_ACCOUNT'] || undefined);
  }

  /** Resolves the argument `draw` or `acme/draw` to the full name of a service. */
  async service(name: string): Promise<string> {
    const [first = '', second, ...rest] = name.split('/');
    if (rest.length > 0 || first === '' || second === '')
      throw usageError(`"${name}" is not a service, use SERVICE or ACCOUNT/SERVICE`);
    return second === undefined ? `${await this.account()}/${first}` : `${first}/${second}`;
  }

  /** Resolves the argument `draw`, `draw/staging` or `acme/draw/staging` to a service and an environment. */
  async serviceAndEnvironment(name: string): Promise<ServiceName> {
    const parts = name.split('/');
    if (parts.length > 3 || parts.includes('')) {
      throw usageError(`"${name}" is not a service, use SERVICE, SERVICE/ENVIRONMENT or ACCOUNT/SERVICE/ENVIRONMENT`);
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

/** The account of a log-in: the chosen one, or the account in the access token. */
function accountOf({ account, token }: Login): string | undefined {
  return account ?? /^(.+)\.[^.]+$/.exec(token)?.[1];
}

/** The accounts that a client's token is valid for. */
export async function accountNames(client: BerthClient, signal: AbortSignal): Promise<string[]> {
  return (await collect(client.accounts.list({ signal }))).map(({ name }) => name);
}

/** Creates a client with a user agent of its own, which the page that confirms a log-in shows. */
export function newClient(url: string, token?: string): BerthClient {
  const headers = { 'user-agent': `berth-cli/${version} (${process.platform}; Node ${process.versions.node})` };
  return new BerthClient({
    url,
    token,
    // The user waits: about two seconds, enough for a platform that restarts a process.
    retries: 3,
    fetch: (input, init) =>
      fetch(input, { ...init, headers: { ...(init?.headers as Record<string, string>), ...headers } }),
  });
}
