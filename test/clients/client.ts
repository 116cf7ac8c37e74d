/** One interface for all registry clients, so that they run the same tests. */
import type { Certificate } from './certificate.ts';
import type { Layouts, LayoutTag } from './layout.ts';

/** The registry's address, and a folder for the client. */
export interface Place {
  /** The folder for the client's configuration and images. */
  readonly folder: string;
  /** The registry's address, as in image names. */
  readonly host: string;
  readonly security: 'plain' | Certificate;
}

export interface Login {
  readonly user: string;
  readonly password: string;
}

/** `signal` kills a push. */
export interface PushOptions {
  readonly signal?: AbortSignal;
}

/**
 * A client of one registry. Functions throw `CommandError`, with the client's output, if it fails. Image names are complete:
 * `<host>/<account>/<service>:<tag>`.
 */
export interface TestedClient extends Partial<AsyncDisposable> {
  login(login: Login): Promise<void>;
  logout(): Promise<void>;
  /** Pushes one of the images in the layouts. */
  push(tag: LayoutTag, target: string, options?: PushOptions): Promise<void>;
  /** Pulls into an empty store, and returns the digest of the image. */
  pull(source: string): Promise<string>;
  tags?(repository: string): Promise<string[]>;
  remove?(target: string): Promise<void>;
}

export interface ClientOptions {
  readonly place: Place;
  readonly layouts: Layouts;
}

/** The client's own error messages, which must be clear enough to fix the problem. */
export interface Words {
  readonly wrongPassword: RegExp;
  readonly noLogin: RegExp;
  readonly noRight: RegExp;
  readonly absent: RegExp;
  readonly untrusted: RegExp;
}

export interface ClientKind<Client extends TestedClient = TestedClient> {
  readonly name: string;
  readonly installed: boolean;
  readonly words: Words;
  /** Whether it has `remove`. */
  readonly deletes: boolean;
  /** Whether the test cannot configure which authority this client trusts. */
  readonly hasFixedTrust?: boolean;
  /** Without `trust`, the client does not trust the registry's certificate authority. */
  open(options: ClientOptions, trust: boolean): Promise<Client>;
}
