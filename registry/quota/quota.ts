/**
 * Limits the bytes that an account stores in its repositories and its open uploads. Usage is measured at intervals, and each process
 * counts its own changes in between. So bytes that other processes receive meanwhile may exceed a limit.
 */
import { lengthOf } from '../../core/blobs/blobs.ts';
import type { Blobs, ByteSource } from '../../core/blobs/blobs.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { sizeText } from '../../core/text/size-text.ts';
import type { Store } from '../../core/store/store.ts';
import { contentId, manifests } from '../content/documents.ts';
import { RegistryError } from '../errors.ts';
import type { RegistryLimits } from '../context.ts';
import { QuotaLimits } from './quota-limits.ts';
import { UsageCounter } from './usage-counter.ts';
import { hasBlob, openUploadIds, storedBytes, uploadedBytes } from './usage.ts';

/** When a client with too many open uploads should try again: a push in progress finishes some in this time. */
const retryUploadSeconds = 30;

interface QuotaParts {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly limits: RegistryLimits;
}

/** An upload to which a request appends. */
interface LimitedUpload {
  readonly repository: string;
  readonly uploadId: string;
  /** Its size so far. */
  readonly sizeBytes: number;
  /** How many more bytes the client announces; 0 if unknown. */
  readonly announcedBytes: number;
}

/** An upload that a request of this process is writing to. */
interface Growing {
  readonly uploadId: string;
  readonly account: string;
  readonly startBytes: number;
  grownBytes: number;
}

export class Quota {
  readonly #parts: QuotaParts;
  readonly #limits: RegistryLimits;
  /** Without the bytes that requests in progress in this process have appended: `#growth` returns these. */
  readonly #bytes: UsageCounter;
  readonly #uploads: UsageCounter;
  readonly #quotaLimits: QuotaLimits;
  readonly #growing = new Set<Growing>();

  constructor(parts: QuotaParts) {
    const { store, clock, limits } = parts;
    this.#parts = parts;
    this.#limits = limits;
    this.#quotaLimits = new QuotaLimits({ store, clock, defaultBytes: limits.accountBytes });
    this.#bytes = new UsageCounter(clock, (account) => this.#measureBytes(account));
    this.#uploads = new UsageCounter(clock, async (account) => {
      return (await openUploadIds(store, account, limits.openUploads + 1)).length;
    });
  }

  /** Reserves an upload session. Throws `too-many-uploads` or `quota-exceeded`. */
  async beginUpload(repository: string): Promise<void> {
    const { openUploads } = this.#limits;
    const account = accountOf(repository);
    await this.#require(account, 1);
    if (openUploads === 0) return;
    const { fits, usage } = await this.#uploads.reserve(account, 1, openUploads);
    if (!fits) {
      const headers = { 'retry-after': String(retryUploadSeconds) };
      throw new RegistryError('too-many-uploads', { detail: `${usage} of ${openUploads}`, headers });
    }
  }

  /** Releases an upload session. */
  endUpload(repository: string): void {
    this.#uploads.count(accountOf(repository), -1);
  }

  /** Yields a request body and counts its bytes. Throws `blob-too-large` or `quota-exceeded`, before it reads the body if possible. */
  async *countAndLimit(body: ByteSource, upload: LimitedUpload): AsyncGenerator<readonly Uint8Array[], void> {
    const { repository, uploadId, sizeBytes: startBytes, announcedBytes } = upload;
    const account = accountOf(repository);
    this.#requireBlobSize(startBytes + announcedBytes);
    await this.#require(account, announcedBytes);
    const growing = { uploadId, account, startBytes, grownBytes: 0 };
    this.#growing.add(growing);
    try {
      for await (const chunks of body) {
        const moreBytes = lengthOf(chunks);
        this.#requireBlobSize(startBytes + growing.grownBytes + moreBytes);
        if (!this.#fitsKnownUsage(account, moreBytes)) await this.#require(account, moreBytes);
        growing.grownBytes += moreBytes;
        yield chunks;
      }
    } finally {
      this.#growing.delete(growing);
      this.#bytes.count(account, growing.grownBytes);
    }
  }

  /** Releases the bytes of an upload that was deleted, or whose blob turned out to be stored already. */
  release(repository: string, sizeBytes: number): void {
    this.#bytes.count(accountOf(repository), -sizeBytes);
  }

  /** Whether a blob already counts for the account of a repository. */
  async counts(repository: string, digest: string): Promise<boolean> {
    const account = accountOf(repository);
    return (await this.#isLimited(account)) && (await hasBlob(this.#parts.store, account, digest));
  }

  /** Reserves the bytes of a blob that will be mounted. Throws `quota-exceeded`. */
  async reserveBlob(repository: string, blob: { readonly digest: string; readonly sizeBytes: number }): Promise<void> {
    const account = accountOf(repository);
    if (!(await this.#isLimited(account)) || (await hasBlob(this.#parts.store, account, blob.digest))) return;
    await this.#reserve(repository, blob.sizeBytes);
  }

  /** Reserves the bytes of a manifest that will be stored. Throws `quota-exceeded`. */
  async reserveManifest(
    repository: string,
    manifest: { readonly digest: string; readonly bytes: Uint8Array },
  ): Promise<void> {
    if (!(await this.#isLimited(accountOf(repository)))) return;
    if (await this.#parts.store.get(manifests, contentId(repository, manifest.digest))) return;
    await this.#reserve(repository, manifest.bytes.byteLength);
  }

  async #isLimited(account: string): Promise<boolean> {
    return (await this.#quotaLimits.of(account)) < Infinity;
  }

  async #reserve(repository: string, sizeBytes: number): Promise<void> {
    const account = accountOf(repository);
    const maxBytes = await this.#quotaLimits.of(account);
    const { fits, usage } = await this.#bytes.reserve(account, sizeBytes, maxBytes - this.#growth(account));
    if (!fits) throw this.#exceeded(account, usage, maxBytes);
  }

  #requireBlobSize(sizeBytes: number): void {
    const { blobBytes } = this.#limits;
    if (blobBytes === 0 || sizeBytes <= blobBytes) return;
    throw new RegistryError('blob-too-large', { detail: `at most ${sizeText(blobBytes)}` });
  }

  /** Does not measure, because it runs for every chunk. */
  #fitsKnownUsage(account: string, moreBytes: number): boolean {
    const bytes = this.#bytes.known(account) + this.#growth(account) + moreBytes;
    return bytes <= this.#quotaLimits.known(account);
  }

  async #require(account: string, moreBytes: number): Promise<void> {
    const maxBytes = await this.#quotaLimits.of(account);
    if (maxBytes === Infinity) return;
    const { fits, usage } = await this.#bytes.fits(account, this.#growth(account) + moreBytes, maxBytes);
    if (!fits) throw this.#exceeded(account, usage, maxBytes);
  }

  #exceeded(account: string, usage: number, maxBytes: number): RegistryError {
    const used = sizeText(usage + this.#growth(account));
    return new RegistryError('quota-exceeded', { detail: `${account} has ${used} of ${sizeText(maxBytes)}` });
  }

  #growth(account: string): number {
    let bytes = 0;
    for (const growing of this.#growing) if (growing.account === account) bytes += growing.grownBytes;
    return bytes;
  }

  async #measureBytes(account: string): Promise<number> {
    const { store, blobs } = this.#parts;
    const stored = await storedBytes(store, account);
    const growing = new Map(Array.from(this.#growing, (each) => [each.uploadId, each]));
    const uploadIds = await openUploadIds(store, account);
    const resting = uploadIds.filter((uploadId) => !growing.has(uploadId));
    const begun = uploadIds.reduce((sum, uploadId) => sum + (growing.get(uploadId)?.startBytes ?? 0), 0);
    return stored + begun + (await uploadedBytes(blobs, resting));
  }
}

/** Whether an upload failed because it exceeds a limit. */
export function isOverLimit(error: unknown): boolean {
  return error instanceof RegistryError && ['quota-exceeded', 'blob-too-large'].includes(error.entry);
}

function accountOf(repository: string): string {
  return repository.slice(0, repository.indexOf('/'));
}
