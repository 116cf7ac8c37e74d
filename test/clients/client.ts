/** What a registry client can do, so that all can be told to do the same. */
import type { Certificate } from './certificate.ts';
import type { Layouts, LayoutTag } from './layout.ts';

/** Where a client meets the registry. */
export interface Place {
  /** For the client's configuration and images. */
  readonly folder: string;
  /** The registry's address, as it stands in the names of images. */
  readonly host: string;
  readonly security: 'plain' | Certificate;
}

export interface Login {
  readonly user: string;
  readonly password: string;
}

/** How a push can be ended before its end. */
export interface PushOptions {
  readonly signal?: AbortSignal;
}

/**
 * One client, at one place. Functions throw `CommandError`, with what the client said, if it fails. Names of images are whole:
 * `<host>/<account>/<service>:<tag>`.
 */
export interface RegistryClient extends Partial<AsyncDisposable> {
  login(login: Login): Promise<void>;
  logout(): Promise<void>;
  /** Pushes one of the images in the layouts. */
  push(tag: LayoutTag, target: string, options?: PushOptions): Promise<void>;
  /** Pulls into an empty store, and returns the digest of what came. */
  pull(source: string): Promise<string>;
  tags?(repository: string): Promise<string[]>;
  remove?(target: string): Promise<void>;
}

export interface ClientOptions {
  readonly place: Place;
  readonly layouts: Layouts;
}

/** What a client says when something is refused: in words of its own, and clear enough to know what to mend. */
export interface Words {
  readonly wrongPassword: RegExp;
  readonly noLogin: RegExp;
  readonly noRight: RegExp;
  readonly absent: RegExp;
  readonly untrusted: RegExp;
}

export interface ClientKind<Client extends RegistryClient = RegistryClient> {
  readonly name: string;
  readonly installed: boolean;
  readonly words: Words;
  /** Whether it has `remove`. */
  readonly deletes: boolean;
  /** It cannot be told here which authority to trust. */
  readonly untrusting?: boolean;
  /** Without `trust`, as by somebody who forgot to say which authority's certificates are good. */
  open(options: ClientOptions, trust: boolean): Promise<Client>;
}
