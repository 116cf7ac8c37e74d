/** Resolves to `undefined` if the action fails because a file does not exist. */
export async function ifPresent<R>(action: Promise<R>): Promise<R | undefined> {
  try {
    return await action;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The code of a system error, such as `ENOENT`. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('errno' in error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
