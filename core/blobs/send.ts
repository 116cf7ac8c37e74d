import type { Writable } from 'node:stream';

/** Writes bytes to a stream. Resolves when the stream has consumed them, so that their buffer can be reused. */
export async function send(to: Writable, bytes: Uint8Array): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const onClose = () => reject(prematureClose());
    if (to.destroyed) {
      onClose();
      return;
    }
    to.once('close', onClose);
    to.write(bytes, (error) => {
      to.off('close', onClose);
      if (error) reject(error);
      else resolve();
    });
  });
}

/** Ignores the `error` events of a stream, since `send` rejects with the same errors: without a listener they end the process. */
export function ignoreErrors(to: Writable): Disposable {
  const ignore = () => {};
  to.on('error', ignore);
  return {
    [Symbol.dispose]: () => {
      // A failed stream emits its error after the last write.
      if (!to.errored) to.off('error', ignore);
    },
  };
}

/** The error of `stream.pipeline` for the same case. */
function prematureClose(): Error {
  return Object.assign(new Error('The stream was closed early'), { code: 'ERR_STREAM_PREMATURE_CLOSE' });
}
