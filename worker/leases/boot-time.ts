import { uptime } from 'node:os';

/**
 * Milliseconds since the machine started, those of a suspended machine included (CLOCK_BOOTTIME, in steps of 10 ms). All
 * containers of the machine count the same ones, and setting the time of day changes nothing.
 */
export function bootTimeMs(): number {
  return Math.floor(uptime() * 1000);
}
