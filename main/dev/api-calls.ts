/** Calls of the development server to its own API, in the name of the account. */
import type { BackendMetadata } from '../../contract/backend.ts';
import { linesOf } from '../../core/text/lines.ts';
import { Readable } from 'node:stream';
import { devAccount, devService } from './own-paths.ts';

interface RunningBackend {
  readonly id: string;
  readonly image_digest: string;
}

export class ApiCalls {
  readonly #url: string;
  readonly #token: string;

  constructor({ url, token }: { readonly url: string; readonly token: string }) {
    this.#url = url;
    this.#token = token;
  }

  async createService(signal: AbortSignal): Promise<void> {
    await this.#send(`/v2/account/${devAccount}/service`, { signal, body: { name: devService } });
  }

  /** New backends run the image with this digest. */
  async useImage(digest: string, signal: AbortSignal): Promise<void> {
    const path = `/v2/service/${devAccount}/${devService}/update`;
    await this.#send(path, { signal, body: { image_tag: digest } });
  }

  async running(signal: AbortSignal): Promise<readonly RunningBackend[]> {
    const answer = await this.#send(`/v2/account/${devAccount}/backends`, { signal });
    return ((await answer.json()) as { running_backends: RunningBackend[] }).running_backends;
  }

  async backend(id: string, signal: AbortSignal): Promise<BackendMetadata> {
    return (await (await this.#send(`/v2/backend/${id}`, { signal })).json()) as BackendMetadata;
  }

  /** Sends SIGTERM. A backend that has ended by then is no error. */
  async stop(id: string, signal: AbortSignal): Promise<void> {
    await this.#send(`/v2/backend/${id}/terminate`, { signal, body: {} }).catch(() => signal.throwIfAborted());
  }

  /** The lines of a backend's log, until it ends. */
  async *log(id: string, signal: AbortSignal): AsyncGenerator<string> {
    const { body } = await this.#send(`/v2/backend/${id}/logs/stream`, { signal });
    if (!body) return;
    for await (const line of linesOf(Readable.fromWeb(body))) {
      const data = /^data: ?(.*)$/.exec(line)?.[1];
      if (data !== undefined) yield data;
    }
  }

  async #send(path: string, { body, signal }: { body?: object; signal: AbortSignal }): Promise<Response> {
    const response = await fetch(`${this.#url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal,
    });
    if (response.ok) return response;
    throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  }
}
