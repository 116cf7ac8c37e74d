/** Turns a rejection because a file does not exist into `undefined`. */
export async function ifPresent<R>(action: Promise<R>): Promise<R | undefined> {
  try {
    return await action;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The code of an error that the system gave, such as `ENOENT`. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('errno' in error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
