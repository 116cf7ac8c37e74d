/** The document of a manifest. It has fields beside the bytes, so that only verification parses stored bytes again. */
import { contentId } from './documents.ts';
import type { Referrer, StoredManifest } from './documents.ts';
import { isContainerImage } from './manifest.ts';
import type { Manifest } from './manifest.ts';

interface Content {
  readonly repository: string;
  readonly digest: string;
  readonly bytes: Uint8Array;
  readonly manifest: Manifest;
}

/** Creates the document of a manifest that is pushed now. */
export function storedManifest({ repository, digest, bytes, manifest }: Content, now: Date): StoredManifest {
  const { config, layers, manifests, blobs, subject, mediaType } = manifest;
  const parts = [...(config ? [config] : []), ...layers, ...manifests, ...blobs];
  const sizeBytes = bytes.byteLength;
  return {
    id: contentId(repository, digest),
    repository,
    digest,
    mediaType,
    bytes,
    sizeBytes,
    kind: isContainerImage(manifest) ? 'image' : manifest.kind === 'index' ? 'index' : 'other',
    references: [...new Set(parts.map((part) => part.digest))],
    ...(subject && { subject: subject.digest, referrer: referrerOf(manifest, { digest, sizeBytes }) }),
    pushedAt: now,
    usedAt: now,
  };
}

/** distribution-spec, "Listing Referrers": an image without an artifact type has the type of its config. */
function referrerOf(manifest: Manifest, { digest, sizeBytes }: { digest: string; sizeBytes: number }): Referrer {
  const { kind, mediaType, config, annotations } = manifest;
  const artifactType = manifest.artifactType || (kind === 'image' ? config?.mediaType : undefined);
  const descriptor = {
    mediaType,
    digest,
    size: sizeBytes,
    ...(artifactType && { artifactType }),
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
  // No document can hold, and no request can name, a type that is not well-formed.
  return { ...(artifactType && { artifactType: artifactType.toWellFormed() }), descriptor: JSON.stringify(descriptor) };
}
