/** Limits the rate of requests, which each process counts for itself, and of failed logins, which all processes count together. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../core/clock/clock.ts';
import type { Store } from '../../core/store/store.ts';
import { clientAddress, networkOf } from '../../core/http/client-address.ts';
import { TokenBuckets } from '../../core/http/token-buckets.ts';
import { hashToken } from '../../model/access-token.ts';
import type { CountedAttempt } from '../../model/attempts.ts';
import { FailureLimits } from '../../model/failure-limits.ts';
import { RegistryError } from '../errors.ts';
import type { RegistryErrorName } from '../error-catalogue.ts';
import type { RegistryLimits } from '../context.ts';

/** A push or a pull sends many requests at once, then transfers bytes: a burst may be ten seconds' worth of requests. */
const burstSeconds = 10;

/**
 * From one address, logins of this many users may fail at the full rate before all logins of the address are rejected: users of an
 * office share an address, and one with a wrong password must not lock out the others.
 */
const usersPerAddress = 10;

/** The subject of the platform's workers, which are not limited. No account's name has a colon. */
const nodePrefix = 'node:';

interface RateParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly limits: RegistryLimits;
  readonly behindLoadBalancer: boolean;
}

export class RateLimits {
  readonly #behindLoadBalancer: boolean;
  readonly #requests: TokenBuckets | undefined;
  readonly #failures: FailureLimits;
  readonly #failuresPerMinute: number;

  constructor({ store, clock, limits, behindLoadBalancer }: RateParts) {
    this.#behindLoadBalancer = behindLoadBalancer;
    const { requestsPerSecond, failedLoginsPerMinute } = limits;
    if (requestsPerSecond > 0) {
      const size = { capacity: requestsPerSecond * burstSeconds, perSecond: requestsPerSecond };
      this.#requests = new TokenBuckets(clock, size);
    }
    this.#failures = new FailureLimits(store);
    this.#failuresPerMinute = failedLoginsPerMinute;
  }

  /** Counts a request by its account, or by its address if it has no account. Throws `too-many-requests`. */
  admit(request: IncomingMessage, subject?: string): void {
    if (!this.#requests || subject?.startsWith(nodePrefix)) return;
    const key = subject ? `account ${subject}` : this.#networkOf(request);
    if (!this.#requests.take(key)) throw tooMany('too-many-requests', this.#requests.secondsUntilNext(key));
  }

  /**
   * Called before a login is checked. Only failures count, so that frequent successful logins are never rejected. Throws
   * `too-many-failures`.
   */
  async admitLogin(request: IncomingMessage, user: string): Promise<void> {
    const seconds = await this.#failures.secondsToWait(this.#failuresOf(request, user));
    if (seconds > 0) throw tooMany('too-many-failures', seconds);
  }

  /** Counts a login that was wrong. Throws `too-many-failures` if too many were, for instance in another process. */
  async countFailure(request: IncomingMessage, user: string): Promise<void> {
    const seconds = await this.#failures.count(this.#failuresOf(request, user));
    if (seconds > 0) throw tooMany('too-many-failures', seconds);
  }

  #failuresOf(request: IncomingMessage, user: string): CountedAttempt[] {
    const perMinute = this.#failuresPerMinute;
    if (perMinute === 0) return [];
    const network = this.#networkOf(request);
    return [
      {
        // Clients may send a token as their user name.
        id: `registry ${network} ${hashToken(user)}`,
        limit: { capacity: perMinute, seconds: 60 },
      },
      { id: `registry ${network}`, limit: { capacity: perMinute * usersPerAddress, seconds: 60 } },
    ];
  }

  #networkOf(request: IncomingMessage): string {
    return networkOf(clientAddress(request, this.#behindLoadBalancer));
  }
}

function tooMany(entry: RegistryErrorName, seconds: number): RegistryError {
  return new RegistryError(entry, { headers: { 'retry-after': String(Math.max(1, Math.ceil(seconds))) } });
}
