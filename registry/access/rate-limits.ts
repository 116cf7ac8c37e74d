/** How fast requests may come, and how often logins may fail. Counted in this process: two processes let through twice as much. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../core/clock/clock.ts';
import { clientAddress, networkOf } from '../../core/http/client-address.ts';
import { TokenBuckets } from '../../core/http/token-buckets.ts';
import { RegistryError } from '../errors.ts';
import type { RegistryErrorName } from '../errors.ts';
import type { RegistryLimits } from '../quota/limits.ts';

/** A push or a pull sends many requests at once, then waits for bytes: ten seconds' worth may come together. */
const burstSeconds = 10;

/**
 * An address may fail with so many users at full rate before it is refused as a whole: an office behind one address has its
 * share of wrong passwords, and none of them must keep the others out.
 */
const usersPerAddress = 10;

/** Longer than any account's name; users that agree so far count as one. */
const maxUserLength = 64;

/** What the workers of this platform fetch images as: no account's name has a colon. They are not held back. */
const nodePrefix = 'node:';

interface RateParts {
  readonly clock: Clock;
  readonly limits: RegistryLimits;
  readonly behindLoadBalancer: boolean;
}

export class RateLimits {
  readonly #behindLoadBalancer: boolean;
  readonly #requests: TokenBuckets | undefined;
  readonly #failuresOfUser: TokenBuckets | undefined;
  readonly #failuresOfAddress: TokenBuckets | undefined;

  constructor({ clock, limits, behindLoadBalancer }: RateParts) {
    this.#behindLoadBalancer = behindLoadBalancer;
    const buckets = (perSecond: number, capacity: number) =>
      perSecond === 0 ? undefined : new TokenBuckets(clock, { capacity, perSecond });
    const { requestsPerSecond, failedLoginsPerMinute: failures } = limits;
    this.#requests = buckets(requestsPerSecond, requestsPerSecond * burstSeconds);
    this.#failuresOfUser = buckets(failures / 60, failures);
    this.#failuresOfAddress = buckets((failures * usersPerAddress) / 60, failures * usersPerAddress);
  }

  /** Counts a request, by its account or node, or else by its address. Throws `too-many-requests`. */
  admit(request: IncomingMessage, subject?: string): void {
    if (!this.#requests || subject?.startsWith(nodePrefix)) return;
    const key = subject ? `account ${subject}` : this.#networkOf(request);
    if (!this.#requests.take(key)) throw tooMany('too-many-requests', this.#requests.secondsUntilNext(key));
  }

  /**
   * Before a login is checked. Throws `too-many-failures`. Only failures count, so that those who log in all day are never
   * refused.
   *
   * @returns what to call if the login turns out to be wrong.
   */
  beginLogin(request: IncomingMessage, user: string): () => void {
    const [ofUser, ofAddress] = [this.#failuresOfUser, this.#failuresOfAddress];
    if (!ofUser || !ofAddress) return () => {};
    const network = this.#networkOf(request);
    const userKey = `${network} ${user.slice(0, maxUserLength)}`;
    const seconds = Math.max(ofUser.secondsUntilNext(userKey), ofAddress.secondsUntilNext(network));
    if (seconds > 0) throw tooMany('too-many-failures', seconds);
    return () => {
      ofUser.take(userKey);
      ofAddress.take(network);
    };
  }

  #networkOf(request: IncomingMessage): string {
    return networkOf(clientAddress(request, this.#behindLoadBalancer));
  }
}

function tooMany(entry: RegistryErrorName, seconds: number): RegistryError {
  return new RegistryError(entry, { headers: { 'retry-after': String(Math.max(1, Math.ceil(seconds))) } });
}
