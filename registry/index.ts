/** The public interface of the registry. */
import { blobLinks, leaderLeases, manifests, tags, tombstones, uploadSessions } from './content/documents.ts';

export { openImageArchives } from './image-archives.ts';
export type { ImageArchives } from './image-archives.ts';
export { purgeRepository } from './content/repositories.ts';
export { openRegistry } from './registry.ts';
export type { RegistryDeps, RegistryLimits } from './context.ts';
export type { Registry } from './registry.ts';
export { GarbageCollector, GcBusyError } from './gc/garbage-collector.ts';
export { gcEvent, verificationEvent } from './gc/events.ts';
export type { GcEvent, GcSummary, VerificationEvent, VerificationSummary } from './gc/events.ts';
export type { GcSettings } from './gc/gc-run.ts';
export { AccountQuotas, quotaEvent } from './quota/account-quotas.ts';
export type { QuotaEvent } from './quota/account-quotas.ts';

/** The registry's collections in the store. */
export const registryCollections = [manifests, tags, blobLinks, uploadSessions, tombstones, leaderLeases] as const;
