/** What the registry room offers. */
import { blobLinks, collectorTurns, manifests, tags, tombstones, uploadSessions } from './content/documents.ts';

export { openImageArchives } from './archive/image-archives.ts';
export type { ImageArchives } from './archive/image-archives.ts';
export { openRegistry } from './registry.ts';
export type { RegistryDeps } from './context.ts';
export type { Registry } from './registry.ts';
export { CollectorBusyError, openCollector } from './gc/collector.ts';
export type { Collector } from './gc/collector.ts';
export { collectionEvent, verificationEvent } from './gc/events.ts';
export type { CollectionEvent, CollectionSummary, VerificationEvent, VerificationSummary } from './gc/events.ts';
export type { CollectionSettings } from './gc/settings.ts';
export { AccountQuotas, quotaEvent } from './quota/account-quotas.ts';
export type { QuotaEvent } from './quota/account-quotas.ts';
export type { RegistryLimits } from './quota/limits.ts';

/** The collections that the registry keeps in the store. */
export const registryCollections = [manifests, tags, blobLinks, uploadSessions, tombstones, collectorTurns] as const;
