/** What the registry room offers. */
import { blobLinks, manifests, tags, uploadSessions } from './documents.ts';

export { closeOnClientError, openRegistry } from './registry.ts';

/** The collections that the registry keeps in the store. */
export const registryCollections = [manifests, tags, blobLinks, uploadSessions] as const;
