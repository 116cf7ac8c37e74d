/**
 * What the registry needs to understand of a manifest. The bytes are kept as they were pushed; here only the fields that we
 * rely on are read, strictly. A manifest that two readers could take for two things is refused (CVE-2021-41190).
 */
import { z } from 'zod';
import { digestPattern } from '../../contract/names.ts';
import { RegistryError } from '../errors.ts';
import { parseStrictJson } from './strict-json.ts';

/** distribution and zot take as much; the specification asks for at least 4 MB. */
export const maxManifestBytes = 4 * 1024 * 1024;

/** Real images have at most 127 layers, build caches some hundreds; each reference costs a look-up. */
const maxReferences = 10_000;

/** `type/subtype` as RFC 6838 limits it, without parameters. */
const mediaTypePattern = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/i;

export const indexMediaType = 'application/vnd.oci.image.index.v1+json';

const kinds: Readonly<Record<string, 'image' | 'index'>> = {
  'application/vnd.oci.image.manifest.v1+json': 'image',
  'application/vnd.docker.distribution.manifest.v2+json': 'image',
  [indexMediaType]: 'index',
  'application/vnd.docker.distribution.manifest.list.v2+json': 'index',
};

/** Configs of images that a container can be made of. */
export const imageConfigTypes = [
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
];

/** Docker's first manifests list layers in a way of their own; no engine of the last years pulls them. */
const outdatedTypePattern = /^application\/vnd\.docker\.distribution\.manifest\.v1\+/;

const mediaType = z.string().regex(mediaTypePattern);
/** Checked by hand: thousands of annotations would cost `z.record` a second. */
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
  // Media types that we do not know are kept, with whatever they refer to in the ways that are usual.
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
  /** The children of an index: manifests, and in build caches blobs. */
  readonly manifests: readonly Descriptor[];
  /** What artifacts of the OCI's withdrawn artifact manifest refer to. */
  readonly blobs: readonly Descriptor[];
}

/**
 * Understands a manifest.
 *
 * @param contentType - the `Content-Type` header; without one, the manifest's own `mediaType` counts.
 * @throws RegistryError `manifest-invalid`, saying what is wrong with it.
 */
export function parseManifest(bytes: Uint8Array, contentType: string | undefined): Manifest {
  const json = parseJsonObject(bytes);
  const type = contentType?.split(';')[0]?.trim() ?? ('mediaType' in json ? json.mediaType : undefined);
  if (typeof type !== 'string' || !mediaTypePattern.test(type)) throw invalid('The Content-Type is not a media type');
  if (outdatedTypePattern.test(type))
    throw invalid('Manifests of schema version 1 are not taken, push version 2 or OCI');
  const kind = kindOf(type);
  const result = schemas[kind].safeParse(json);
  if (!result.success) throw invalid(explain(result.error));
  const parsed = result.data;
  if (kind !== 'other') checkSpelling(json);
  if (typeof parsed.mediaType === 'string' && parsed.mediaType !== type) {
    throw invalid(`The Content-Type is ${type} and the mediaType ${parsed.mediaType}`);
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

/** What a manifest of a media type is. */
export function kindOf(mediaType: string): Manifest['kind'] {
  return kinds[mediaType] ?? 'other';
}

/** Whether a container can be made of it. Signatures, charts and build caches have another config, or none. */
export function isContainerImage({ kind, config }: Manifest): boolean {
  return kind === 'image' && config !== undefined && imageConfigTypes.includes(config.mediaType);
}

/** Everything a manifest needs to have in its repository. Not its subject, which may come later or never. */
export function referencesOf(manifest: Manifest): Descriptor[] {
  const { config, layers, manifests, blobs } = manifest;
  return [...(config ? [config] : []), ...layers.filter((layer) => !isForeign(layer)), ...manifests, ...blobs];
}

/** Foreign layers stand elsewhere, by their licence; clients do not push them. */
export function isForeign({ mediaType }: Descriptor): boolean {
  return mediaType.includes('.foreign.') || mediaType.includes('nondistributable');
}

/** What is wrong with a text may quote it; this much helps. */
const maxDetailLength = 200;

function parseJsonObject(bytes: Uint8Array): object {
  let json: unknown;
  try {
    // A byte order mark stays, and is no JSON: other readers would not skip it either.
    json = parseStrictJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (error) {
    const detail = error instanceof SyntaxError ? error.message : 'Not UTF-8';
    throw new RegistryError('manifest-invalid', { detail: detail.slice(0, maxDetailLength), cause: error });
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw invalid('Not a JSON object');
  return json;
}

/** The fields that readers of images and indexes rely on, by what Go's reader makes of their names. */
const fieldNames = new Map(
  ['schemaVersion', 'mediaType', 'artifactType', 'config', 'layers', 'manifests', 'subject', 'annotations']
    .concat(['digest', 'size', 'urls', 'data', 'platform'])
    .map((name) => [folded(name), name]),
);

/** Go's reader, which most clients have, takes `Layers` and `layer\u017f` for `layers`: it would see another image than we. */
function checkSpelling(manifest: object): void {
  const { config, layers, manifests, subject } = manifest as Record<string, object | object[] | null | undefined>;
  for (const fields of [manifest, config, layers, manifests, subject].flat()) {
    for (const name of Object.keys(fields ?? {})) {
      const field = fieldNames.get(folded(name));
      if (field !== undefined && field !== name) throw invalid(`Spell the field ${field} so, not ${name}`);
    }
  }
}

/** To upper case first: that way the Kelvin sign becomes a k, and the long s an s. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

function isRecordOfStrings(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((each) => typeof each === 'string');
}

function explain(error: z.ZodError): string {
  const [issue] = error.issues;
  return issue ? `${issue.path.join('.')}: ${issue.message}` : 'Not of the form of its media type';
}

function invalid(detail: string): RegistryError {
  return new RegistryError('manifest-invalid', { detail });
}
