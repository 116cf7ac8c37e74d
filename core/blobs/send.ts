import type { Writable } from 'node:stream';

/** Resolves when the stream has handed the bytes on, and their buffer is free. */
export async function send(to: Writable, bytes: Uint8Array): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const onClose = () => reject(leftEarly());
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

/** Listens to what a stream fails with, which comes from `send` too and would end the process if nobody listened. */
export function keptQuiet(to: Writable): Disposable {
  const ignore = () => {};
  to.on('error', ignore);
  return {
    [Symbol.dispose]: () => {
      // One that fails says so after its last write.
      if (!to.errored) to.off('error', ignore);
    },
  };
}

/** As `stream.pipeline` says it. */
function leftEarly(): Error {
  return Object.assign(new Error('The stream was closed early'), { code: 'ERR_STREAM_PREMATURE_CLOSE' });
}
