import { ConfigError } from '../../core/config/settings.ts';
import { StoreError } from '../../core/store/store.ts';

/** Whether an error is one that the person who started the process can correct: only its message is printed, without a stack. */
export function isUserError(error: unknown): error is Error {
  if (error instanceof ConfigError) return true;
  if (error instanceof StoreError) return error.code === 'locked' || error.isFull;
  return error instanceof Error && 'code' in error && (error.code === 'EACCES' || error.code === 'ENOSPC');
}
