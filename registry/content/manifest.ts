/**
 * Parses manifests. The registry stores the bytes as they were pushed; this reads only the fields that it needs, strictly. It
 * rejects a manifest that two parsers could read as different types (CVE-2021-41190).
 */
import { z } from 'zod';
import { digestPattern } from '../../contract/names.ts';
import { RegistryError } from '../errors.ts';
import { parseStrictJson } from './strict-json.ts';

/** As in distribution and zot; the specification requires at least 4 MB. */
export const maxManifestBytes = 4 * 1024 * 1024;

/** Real images have at most 127 layers, build caches some hundreds; each reference costs a look-up. */
const maxReferences = 10_000;

/** An index of indexes is rare; deeper nesting is an attack. */
export const maxIndexDepth = 4;

/** `type/subtype` as RFC 6838 limits it, without parameters. */
const mediaTypePattern = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/i;

export const indexMediaType = 'application/vnd.oci.image.index.v1+json';

const kinds: Readonly<Record<string, 'image' | 'index'>> = {
  'application/vnd.oci.image.manifest.v1+json': 'image',
  'application/vnd.docker.distribution.manifest.v2+json': 'image',
  [indexMediaType]: 'index',
  'application/vnd.docker.distribution.manifest.list.v2+json': 'index',
};

/** Media types of the configs of images that a container can run. */
export const imageConfigTypes = [
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
];

/** Docker's first manifests have another format; no recent engine pulls them. */
const outdatedTypePattern = /^application\/vnd\.docker\.distribution\.manifest\.v1\+/;

const mediaType = z.string().regex(mediaTypePattern);
/** Not `z.record`, which takes a second for thousands of annotations. */
const annotations = z
  .custom<Readonly<Record<string, string>>>(isRecordOfStrings, 'Annotations must be strings')
  .nullish();

const descriptor = z.object({
  mediaType,
  digest: z.string().regex(digestPattern, 'Not a sha256 or sha512 digest'),
  size: z.int().nonnegative(),
  artifactType: z.string().nullish(),
  annotations,
  platform: z.object({ os: z.string().nullish(), architecture: z.string().nullish() }).nullish(),
});

const descriptors = z.array(descriptor).max(maxReferences);

const common = {
  mediaType: mediaType.nullish(),
  artifactType: z.string().nullish(),
  subject: descriptor.nullish(),
  annotations,
};

const schemaVersion = z.literal(2);
const absent = z.undefined('Not in a manifest of this type').optional();

const schemas = {
  image: z.object({
    ...common,
    schemaVersion,
    config: descriptor,
    layers: descriptors.nullish(),
    manifests: absent,
    blobs: absent,
  }),
  index: z.object({
    ...common,
    schemaVersion,
    manifests: descriptors.nullish(),
    config: absent,
    layers: absent,
    blobs: absent,
  }),
  // Manifests of unknown media types are stored, with the references in their usual fields.
  other: z.object({
    ...common,
    config: descriptor.nullish(),
    layers: descriptors.nullish(),
    manifests: descriptors.nullish(),
    blobs: descriptors.nullish(),
  }),
};

export type Descriptor = z.infer<typeof descriptor>;

export interface Manifest {
  readonly kind: 'image' | 'index' | 'other';
  readonly mediaType: string;
  readonly artifactType: string | undefined;
  readonly annotations: Readonly<Record<string, string>>;
  readonly subject: Descriptor | undefined;
  readonly config: Descriptor | undefined;
  readonly layers: readonly Descriptor[];
  /** The children of an index: manifests, or blobs in build caches. */
  readonly manifests: readonly Descriptor[];
  /** The references of the OCI's withdrawn artifact manifest. */
  readonly blobs: readonly Descriptor[];
}

/**
 * Parses a manifest.
 *
 * @param contentType - the `Content-Type` header; without one, the manifest's own `mediaType` is used.
 * @throws RegistryError `manifest-invalid`, with the problem as its detail.
 */
export function parseManifest(bytes: Uint8Array, contentType: string | undefined): Manifest {
  const json = parseJsonObject(bytes);
  const type = contentType?.split(';')[0]?.trim() ?? ('mediaType' in json ? json.mediaType : undefined);
  if (typeof type !== 'string' || !mediaTypePattern.test(type)) throw invalid('The Content-Type is not a media type');
  if (outdatedTypePattern.test(type))
    throw invalid('Manifests of schema version 1 are not supported, push version 2 or OCI');
  const kind = kindOf(type);
  const result = schemas[kind].safeParse(json);
  if (!result.success) throw invalid(explain(result.error));
  const parsed = result.data;
  if (kind !== 'other') checkSpelling(json);
  if (typeof parsed.mediaType === 'string' && parsed.mediaType !== type) {
    throw invalid(`The Content-Type is ${type}, but the field mediaType is ${parsed.mediaType}`);
  }
  return {
    kind,
    mediaType: type,
    artifactType: parsed.artifactType ?? undefined,
    annotations: parsed.annotations ?? {},
    subject: parsed.subject ?? undefined,
    config: parsed.config ?? undefined,
    layers: parsed.layers ?? [],
    manifests: parsed.manifests ?? [],
    blobs: parsed.blobs ?? [],
  };
}

/** The kind of manifest with a media type. */
export function kindOf(mediaType: string): Manifest['kind'] {
  return kinds[mediaType] ?? 'other';
}

/** Whether a container can run it. Signatures, charts and build caches have another config, or none. */
export function isContainerImage({ kind, config }: Manifest): boolean {
  return kind === 'image' && config !== undefined && imageConfigTypes.includes(config.mediaType);
}

/** Everything that a manifest consists of. Not its subject, which may be pushed later or never. */
export function partsOf({ config, layers, manifests, blobs }: Manifest): Descriptor[] {
  return [...(config ? [config] : []), ...layers, ...manifests, ...blobs];
}

/** The parts that a manifest needs in its repository. */
export function referencesOf(manifest: Manifest): Descriptor[] {
  return partsOf({ ...manifest, layers: manifest.layers.filter((layer) => !isForeign(layer)) });
}

/** Foreign layers are stored elsewhere, because of their licence; clients do not push them. */
function isForeign({ mediaType }: Descriptor): boolean {
  return mediaType.includes('.foreign.') || mediaType.includes('nondistributable');
}

/** Messages of the parser may quote the text; a longer quote does not help. */
const maxDetailLength = 200;

function parseJsonObject(bytes: Uint8Array): object {
  let json: unknown;
  try {
    // A byte order mark is not JSON: other parsers do not skip it either.
    json = parseStrictJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (error) {
    const detail = error instanceof SyntaxError ? error.message : 'Not UTF-8';
    throw new RegistryError('manifest-invalid', { detail: detail.slice(0, maxDetailLength), cause: error });
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw invalid('Not a JSON object');
  return json;
}

/** The fields of images and indexes that parsers use, by their case-folded names, which Go's parser compares. */
const fieldNames = new Map(
  ['schemaVersion', 'mediaType', 'artifactType', 'config', 'layers', 'manifests', 'subject', 'annotations']
    .concat(['digest', 'size', 'urls', 'data', 'platform'])
    .map((name) => [folded(name), name]),
);

/** Go's parser, which most clients use, reads `Layers` and `layer\u017f` as `layers`: it would read another image. */
function checkSpelling(manifest: object): void {
  const { config, layers, manifests, subject } = manifest as Record<string, object | object[] | null | undefined>;
  for (const fields of [manifest, config, layers, manifests, subject].flat()) {
    for (const name of Object.keys(fields ?? {})) {
      const field = fieldNames.get(folded(name));
      if (field !== undefined && field !== name) throw invalid(`Spell the field ${field}, not ${name}`);
    }
  }
}

/** Folds to upper case first, which turns the Kelvin sign into a k and the long s into an s. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

function isRecordOfStrings(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((each) => typeof each === 'string');
}

function explain(error: z.ZodError): string {
  const [issue] = error.issues;
  return issue ? `${issue.path.join('.')}: ${issue.message}` : 'Not valid for its media type';
}

function invalid(detail: string): RegistryError {
  return new RegistryError('manifest-invalid', { detail });
}
