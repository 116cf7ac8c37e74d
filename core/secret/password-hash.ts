/** Hashes of passwords: argon2id, with its parameters in the text, so that they can be raised later. */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { Semaphore } from '../async/semaphore.ts';

/** The costs of a hash with argon2id: KiB of memory, passes over it, and lanes. */
export interface PasswordCosts {
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
}

/**
 * The second recommendation of RFC 9106, for machines with little memory: 64 MiB, three passes, four lanes. It is above the minimum of
 * OWASP (19 MiB, two passes) and takes about 160 ms of one core.
 */
export const recommendedCosts: PasswordCosts = { memory: 64 * 1024, passes: 3, parallelism: 4 };

const saltBytes = 16;
const hashBytes = 32;

const hashPattern = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

const argon2Async = promisify(argon2);

/** Hashes passwords with the given costs, two at a time. */
export class PasswordHashes {
  readonly #costs: PasswordCosts;
  /** Each hash holds 64 MiB and a core: with more at a time, log-ins would slow down sessions. */
  readonly #running = new Semaphore(2);

  constructor(costs: PasswordCosts) {
    this.#costs = costs;
  }

  /** A new hash of a password, as a text of the PHC format. */
  async hash(password: string): Promise<string> {
    const salt = randomBytes(saltBytes);
    const hash = await this.#derive(password, { ...this.#costs, salt, length: hashBytes });
    const { memory, passes, parallelism } = this.#costs;
    return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(hash)}`;
  }

  /** Whether a password belongs to a hash. Without a hash it takes the same time and returns false. */
  async matches(password: string, hash: string | undefined): Promise<boolean> {
    const [, memory, passes, parallelism, salt = '', expected = ''] = hashPattern.exec(hash ?? '') ?? [];
    if (memory === undefined) {
      await this.hash(password);
      return false;
    }
    const wanted = Buffer.from(expected, 'base64');
    const costs = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) };
    const given = await this.#derive(password, { ...costs, salt: Buffer.from(salt, 'base64'), length: wanted.length });
    return timingSafeEqual(given, wanted);
  }

  async #derive(password: string, { salt, length, ...costs }: Derivation): Promise<Buffer> {
    using _permit = await this.#running.acquire();
    // The same characters may be typed as different code points, depending on the keyboard (NIST SP 800-63B).
    const message = Buffer.from(password.normalize('NFKC'));
    return await argon2Async('argon2id', { message, nonce: salt, tagLength: length, ...costs });
  }
}

interface Derivation extends PasswordCosts {
  readonly salt: Buffer;
  readonly length: number;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}
