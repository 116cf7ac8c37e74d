import { systemClock } from '../../../core/clock/system-clock.ts';
import { HashThreads } from '../../../core/hash/hash-threads.ts';

/** The hashing threads of blob drivers in tests. They never keep a process alive. */
export const hashing = new HashThreads(systemClock);
