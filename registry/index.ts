/** What the registry room offers. */
import { blobLinks, manifests, tags, uploadSessions } from './documents.ts';

export { openImageArchives } from './archive/image-archives.ts';
export type { ArchiveUpload, ImageArchive, ImageArchives } from './archive/image-archives.ts';
export { openRegistry } from './registry.ts';
export type { RegistryDeps } from './context.ts';
export type { Registry } from './registry.ts';
export type { RegistryLimits } from './limits.ts';

/** The collections that the registry keeps in the store. */
export const registryCollections = [manifests, tags, blobLinks, uploadSessions] as const;
