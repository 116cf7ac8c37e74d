/** Attempts that are limited across processes: each kind of attempt by each client has a bucket in the store, which refills with time. */
import type { Collection, Store } from '../core/store/store.ts';
import { upsert } from '../core/store/upsert.ts';

export interface AttemptBucket {
  readonly id: string;
  /** How many attempts were left at the time `at`, with a fraction of the next one. */
  readonly left: number;
  readonly at: Date;
  /** When it is full again. */
  readonly endsAt: Date;
}

export const attemptBuckets: Collection<AttemptBucket, 'byEnd'> = {
  name: 'attempts',
  indexes: { byEnd: ['endsAt'] },
};

export interface AttemptLimit {
  /** How many attempts may be made at once. */
  readonly capacity: number;
  /** In how many seconds an empty bucket becomes full. */
  readonly seconds: number;
}

/** Far more than the rounding error of summed fractions of attempts. */
const rounding = 1e-6;

/** Returns the bucket after an attempt, and how long to wait if no attempt was left. */
export function withAttempt(
  bucket: AttemptBucket | undefined,
  limit: AttemptLimit,
  { id, now }: { id: string; now: Date },
): { readonly bucket: AttemptBucket; readonly waitSeconds: number } {
  const left = leftNow(bucket, limit, now);
  const rate = limit.capacity / limit.seconds;
  const missing = 1 - left - rounding;
  if (missing > 0 && bucket) return { bucket, waitSeconds: Math.ceil(missing / rate) };
  return { bucket: bucketOf(id, left - 1, limit, now), waitSeconds: 0 };
}

/** Returns the bucket after an attempt was uncounted. */
export function withoutAttempt(bucket: AttemptBucket, limit: AttemptLimit, now: Date): AttemptBucket {
  return bucketOf(bucket.id, Math.min(limit.capacity, leftNow(bucket, limit, now) + 1), limit, now);
}

/** An attempt, and the bucket that it is counted in. */
export interface CountedAttempt {
  readonly id: string;
  readonly limit: AttemptLimit;
}

/** How long to wait for an attempt: 0 if one is left. */
export function waitSeconds(bucket: AttemptBucket | undefined, limit: AttemptLimit, now: Date): number {
  return withAttempt(bucket, limit, { id: bucket?.id ?? '', now }).waitSeconds;
}

/** Counts an attempt, if one is left. Returns the bucket afterwards. */
export async function countAttempt(
  store: Store,
  { id, limit }: CountedAttempt,
  now: Date,
): Promise<ReturnType<typeof withAttempt>> {
  let waiting = 0;
  const bucket = await upsert(store, attemptBuckets, id, (current) => {
    const taken = withAttempt(current, limit, { id, now });
    waiting = taken.waitSeconds;
    return taken.bucket;
  });
  return { bucket, waitSeconds: waiting };
}

/** Counts an attempt in several buckets, or in none if one of them has none left. Returns how many seconds to wait: 0 if it may be made. */
export async function countAttempts(store: Store, attempts: readonly CountedAttempt[], now: Date): Promise<number> {
  for (const [i, attempt] of attempts.entries()) {
    const { waitSeconds: waiting } = await countAttempt(store, attempt, now);
    if (waiting === 0) continue;
    await uncountAttempts(store, attempts.slice(0, i), now);
    return waiting;
  }
  return 0;
}

/** Uncounts attempts that were counted. */
export async function uncountAttempts(store: Store, attempts: readonly CountedAttempt[], now: Date): Promise<void> {
  for (const { id, limit } of attempts) {
    await store.update(attemptBuckets, id, (current) => withoutAttempt(current, limit, now));
  }
}

function leftNow(bucket: AttemptBucket | undefined, { capacity, seconds }: AttemptLimit, now: Date): number {
  if (!bucket) return capacity;
  const passedSeconds = Math.max(0, (now.getTime() - bucket.at.getTime()) / 1000);
  return Math.min(capacity, bucket.left + (passedSeconds * capacity) / seconds);
}

function bucketOf(id: string, left: number, { capacity, seconds }: AttemptLimit, now: Date): AttemptBucket {
  const refillMs = ((capacity - left) / capacity) * seconds * 1000;
  return { id, left, at: now, endsAt: new Date(now.getTime() + refillMs) };
}
