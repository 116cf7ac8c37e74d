/** The fixture of the tests of image archives: a real registry, and servers that receive archives into one of its repositories. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect } from 'vitest';
import type { Blobs, BlobsError } from '../../core/blobs/blobs.ts';
import { openInProcessBus } from '../../core/bus/in-process.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { openMetrics } from '../../core/metrics/metrics.ts';
import { listen, newServer } from '../../core/http/listener.ts';
import { silentLog } from '../../core/log/log.ts';
import { images } from '../../model/image.ts';
import { ApiError } from '../../model/api-error.ts';
import { services } from '../../model/service.ts';
import { tarOf } from '../../test/kit/registry/archives.ts';
import type { TestEntry } from '../../test/kit/registry/archives.ts';
import { noLimits, openTestRegistry } from '../../test/kit/registry/registry.ts';
import type { TestRegistry, TestRegistryOptions } from '../../test/kit/registry/registry.ts';
import { openImageArchives } from '../image-archives.ts';
import type { ImageArchives } from '../image-archives.ts';
import type { ArchiveLimits } from '../archive/limits.ts';
import type { RegistryLimits } from '../context.ts';
import type { Quota } from '../quota/quota.ts';
import { defaultGcSettings } from './gc-settings.ts';

export const mebibyte = 1024 * 1024;

/** The repository that receives all archives. */
export const repository = 'acme/app';

/** The image that was received, or the error. */
export interface Answer {
  readonly code?: string;
  readonly message?: string;
  readonly digest?: string;
  readonly tag?: string;
}

/** How a server receives archives. */
export interface ReceivingOptions {
  readonly archiveLimits?: Partial<ArchiveLimits>;
  readonly limits?: Partial<RegistryLimits>;
  readonly quota?: Quota;
  /** Measures how long the server waits for a client. */
  readonly clock?: Clock;
}

/** Opens a registry whose repository is empty. */
export async function openArchiveFixture(options: TestRegistryOptions = {}): Promise<ArchiveFixture> {
  return new ArchiveFixture(await openTestRegistry(options));
}

/** Receives archives as the platform does, with faults that a test can set. */
export class ArchiveFixture implements AsyncDisposable {
  readonly registry: TestRegistry;
  /** The error of every write of bytes while it is set. */
  fault: BlobsError | undefined;
  /** Cancels uploads in progress, as when the platform stops. */
  readonly closing = new AbortController();
  readonly #owned = new AsyncDisposableStack();

  constructor(registry: TestRegistry) {
    this.registry = this.#owned.use(registry);
  }

  /** Opens archives of the registry. */
  archives({ archiveLimits = {}, limits, quota, clock = systemClock }: ReceivingOptions = {}): ImageArchives {
    return this.#owned.use(
      openImageArchives({
        ...this.registry,
        blobs: this.#faultyBlobs(),
        registry: quota && { collector: this.registry.collector, quota },
        metrics: openMetrics(),
        gc: defaultGcSettings,
        clock,
        log: silentLog(),
        defaultCluster: 'main',
        registryHost: 'registry.test',
        maxArchiveBytes: 64 * mebibyte,
        archiveLimits,
        limits: { ...noLimits, ...limits },
        bus: openInProcessBus({ log: silentLog() }),
      }),
    );
  }

  /** A server that receives archives and answers the image or the error. */
  async open(options?: ReceivingOptions): Promise<string> {
    const archives = this.archives(options);
    const server = newServer();
    server.on('request', (request, response) => void this.#receive(archives, request, response));
    const listener = this.#owned.use(await listen(server, { host: '127.0.0.1', port: 0, drainMs: 100 }));
    return `http://127.0.0.1:${listener.port}/`;
  }

  async tags(): Promise<string[]> {
    const { body } = await this.registry.as(`/v2/${repository}/tags/list`);
    return (JSON.parse(body.toString()) as { tags: string[] }).tags;
  }

  async uploadsLeft(): Promise<string[]> {
    const ids: string[] = [];
    for await (const id of this.registry.blobs.listUploads()) ids.push(id);
    return ids;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  #faultyBlobs(): Blobs {
    return new Proxy(this.registry.blobs, {
      get: (target, name) => {
        if (name === 'appendUpload' && this.fault) throw this.fault;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  }

  async #receive(archives: ImageArchives, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const disconnected = new AbortController();
    response.once('close', () => disconnected.abort());
    const query = new URL(request.url ?? '', 'http://localhost').searchParams;
    const selector = { tag: query.get('tag') ?? undefined, image: query.get('image') ?? undefined };
    const signal = AbortSignal.any([disconnected.signal, this.closing.signal]);
    try {
      const { digest, tag } = await archives.receive({ repository, by: 'acme', request, response, selector, signal });
      response.end(JSON.stringify({ digest, tag }));
    } catch (error) {
      const about = error instanceof ApiError ? { code: error.code, message: error.message } : { code: String(error) };
      response.end(JSON.stringify(about));
    }
  }
}

/** Sends an archive as a form, with text fields after the file. */
export async function send(url: string, archive: Uint8Array, fields: Record<string, string> = {}): Promise<Answer> {
  const body = new FormData();
  body.append('archive', new Blob([Buffer.from(archive)]), 'image.tar');
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  return (await (await fetch(url, { method: 'POST', body })).json()) as Answer;
}

export async function sendEntries(
  url: string,
  entries: readonly TestEntry[],
  fields?: Record<string, string>,
): Promise<Answer> {
  return await send(url, await tarOf(entries), fields);
}

/** Returns an error message, after it has checked that the upload left nothing visible. */
export async function errorOf(fixture: ArchiveFixture, answer: Answer, code = 'BadRequest'): Promise<string> {
  const { store } = fixture.registry;
  expect(answer).toEqual({ code, message: expect.any(String) });
  expect(await fixture.uploadsLeft()).toEqual([]);
  expect(await store.get(services, repository)).toBeUndefined();
  expect(await store.find(images, { index: 'byTime', equals: { repository } })).toEqual([]);
  return answer.message ?? '';
}
