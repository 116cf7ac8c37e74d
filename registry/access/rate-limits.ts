/** Limits the rate of requests and of failed logins. Each process counts for itself: two processes allow twice as much. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../core/clock/clock.ts';
import { clientAddress, networkOf } from '../../core/http/client-address.ts';
import { TokenBuckets } from '../../core/http/token-buckets.ts';
import { RegistryError } from '../errors.ts';
import type { RegistryErrorName } from '../error-catalogue.ts';
import type { RegistryLimits } from '../context.ts';

/** A push or a pull sends many requests at once, then transfers bytes: a burst may be ten seconds' worth of requests. */
const burstSeconds = 10;

/**
 * From one address, logins of this many users may fail at the full rate before all logins of the address are refused: users of an
 * office share an address, and one with a wrong password must not lock out the others.
 */
const usersPerAddress = 10;

/** Longer than any account's name; users with the same prefix of this length count as one. */
const maxUserLength = 64;

/** The subject of the platform's workers, which are not limited. No account's name has a colon. */
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

  /** Counts a request by its account, or by its address if it has no account. Throws `too-many-requests`. */
  admit(request: IncomingMessage, subject?: string): void {
    if (!this.#requests || subject?.startsWith(nodePrefix)) return;
    const key = subject ? `account ${subject}` : this.#networkOf(request);
    if (!this.#requests.take(key)) throw tooMany('too-many-requests', this.#requests.secondsUntilNext(key));
  }

  /**
   * Called before a login is checked. Throws `too-many-failures`. Only failures count, so that frequent successful logins are never
   * refused.
   *
   * @returns a function to call if the login is wrong.
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
