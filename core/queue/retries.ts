/** Runs of a job before it is given up. With the pauses below that is a minute and a half: a Docker Engine restarts in less. */
export const maxAttempts = 8;

/** The pause after the first failure, doubled after each further one: most of what fails once works a second later. */
const firstPauseMs = 1_000;

/** The longest pause: a job should not wait long for something that has come back. */
const longestPauseMs = 30_000;

/** How long a job waits after so many failures. */
export function pauseAfterMs(failures: number): number {
  return Math.min(firstPauseMs * 2 ** (failures - 1), longestPauseMs);
}
