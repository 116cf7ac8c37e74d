/** Why a backend ended before it was ready, as text for users. */
import type { TerminationReason } from '../contract/statuses.ts';
import { rank } from './backend.ts';
import type { StatusEntry } from './backend.ts';

const whyStopped: Readonly<Record<TerminationReason, string>> = {
  startuptimeout: 'The application did not become ready in time.',
  lost: 'The machine on which it was started was lost.',
  keyexpired: 'Its key was assigned to another session.',
  external: 'It was stopped before it was ready.',
  swept: 'It was stopped before it was ready.',
};

/** Exit codes with a meaning that shells and init programs share. */
const meanings: Readonly<Record<number, string>> = {
  0: 'its command must run a server until it is stopped',
  126: 'a program cannot be executed',
  127: 'a program was not found',
};

/** Whether an entry says that a backend ended before it was ready. */
export function isStartFailure({ status, lastStatus }: StatusEntry): boolean {
  return status === 'terminated' && lastStatus !== undefined && rank(lastStatus) < rank('ready');
}

/** Explains an entry. The exit code of a container is meaningful only if the platform did not stop it. */
export function whyNotStarted({ failure, terminationReason: reason, exitCode }: Partial<StatusEntry> = {}): string {
  if (failure !== undefined) return failure;
  if (reason) return whyStopped[reason];
  if (typeof exitCode !== 'number') return 'The container ended before it was ready.';
  const meaning = meanings[exitCode];
  return `The container exited with code ${exitCode} before it was ready${meaning === undefined ? '' : `: ${meaning}`}.`;
}
