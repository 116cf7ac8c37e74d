/** Environment variables of containers that must not be readable in the store. */
import type { PlatformSecret } from '../core/secret/platform-secret.ts';
import { SecretBox } from '../core/secret/secret-box.ts';
import type { Backend } from './backend.ts';

type Variables = Readonly<Record<string, string>>;

/** Encrypts variables of a backend for the store, and decrypts them for its container. All processes of a platform can do both. */
export class ContainerEnv {
  readonly #box: SecretBox;

  constructor(secret: PlatformSecret) {
    this.#box = new SecretBox(secret.keyFor('container environment'));
  }

  /** Encrypts variables for the document of a backend. */
  seal(backend: string, variables: Variables): string {
    return this.#box.seal(JSON.stringify(variables), backend);
  }

  /** All variables of a backend that the API has set: the encrypted ones override the others. */
  open({ id, env, sealedEnv }: Pick<Backend, 'id' | 'env' | 'sealedEnv'>): Variables {
    if (sealedEnv === undefined) return env ?? {};
    return { ...env, ...(JSON.parse(this.#box.open(sealedEnv, id)) as Variables) };
  }
}
