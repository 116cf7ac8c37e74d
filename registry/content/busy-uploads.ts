import { RegistryError } from '../errors.ts';

/** Which uploads a request of this process is writing to, finishing or cancelling. */
export class BusyUploads {
  readonly #busy = new Set<string>();

  /** Takes an upload for one request, until disposed. Throws `upload-busy`. */
  enter(uploadId: string): Disposable {
    if (this.#busy.has(uploadId)) throw new RegistryError('upload-busy');
    this.#busy.add(uploadId);
    return { [Symbol.dispose]: () => void this.#busy.delete(uploadId) };
  }
}
