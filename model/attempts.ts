/** Attempts that are limited across processes: each kind of attempt by each client has a bucket in the store, which refills with time. */
import type { Collection, Store } from '../core/store/store.ts';
import { upsert } from '../core/store/upsert.ts';

interface AttemptBucket {
  readonly id: string;
  /** How many attempts were left at that time; a fraction grows towards the next. */
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
  /** In how many seconds that many become available again. */
  readonly seconds: number;
}

/** Far more than the error of adding up fractions of attempts. */
const rounding = 1e-6;

/** What an attempt leaves of a bucket, and how long to wait if there was none left. */
export function takeAttempt(
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

/** A bucket after an attempt that does not count in the end. */
export function returnAttempt(bucket: AttemptBucket, limit: AttemptLimit, now: Date): AttemptBucket {
  return bucketOf(bucket.id, Math.min(limit.capacity, leftNow(bucket, limit, now) + 1), limit, now);
}

/** Counts an attempt. Returns how many seconds to wait if none is left: 0 if the attempt may be made. */
export async function countAttempt(store: Store, id: string, limit: AttemptLimit, now: Date): Promise<number> {
  let waitSeconds = 0;
  await upsert(store, attemptBuckets, id, (current) => {
    const taken = takeAttempt(current, limit, { id, now });
    waitSeconds = taken.waitSeconds;
    return taken.bucket;
  });
  return waitSeconds;
}

/** Takes back an attempt that was counted. */
export async function uncountAttempt(store: Store, id: string, limit: AttemptLimit, now: Date): Promise<void> {
  await store.update(attemptBuckets, id, (current) => returnAttempt(current, limit, now));
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
