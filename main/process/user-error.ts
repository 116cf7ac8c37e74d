import { ConfigError } from '../../core/config/settings.ts';
import { StoreError } from '../../core/store/store.ts';

/** Whether the user who started the process can correct the cause of an error. Then only its message is printed, without a stack. */
export function isUserError(error: unknown): error is Error {
  if (error instanceof ConfigError) return true;
  if (error instanceof StoreError) return error.code === 'locked' || error.isFull;
  return error instanceof Error && 'code' in error && (error.code === 'EACCES' || error.code === 'ENOSPC');
}
