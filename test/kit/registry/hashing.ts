import { systemClock } from '../../../core/clock/system-clock.ts';
import { HashThreads } from '../../../core/hash/hash-threads.ts';

/** For drivers of blobs whose test is about something else. Its threads never keep a process alive. */
export const hashing = new HashThreads(systemClock);
