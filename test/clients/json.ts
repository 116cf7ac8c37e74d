/** Parses the parts of clients' manifests and layouts that tests check. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface ManifestParts {
  readonly mediaType?: string;
  readonly artifactType?: string;
  readonly manifests?: readonly DescriptorParts[];
  readonly layers?: readonly DescriptorParts[];
}

export interface DescriptorParts {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly mediaType: string;
  readonly digest: string;
  readonly artifactType?: string;
}

export function parseManifest(text: string): ManifestParts {
  return JSON.parse(text) as ManifestParts;
}

/** The digest of the only manifest in an OCI layout. */
export async function digestInLayout(folder: string): Promise<string> {
  const { manifests = [] } = parseManifest(await readFile(join(folder, 'index.json'), 'utf8'));
  if (manifests.length !== 1 || !manifests[0]) throw new Error(`There are ${manifests.length} manifests in ${folder}`);
  return manifests[0].digest;
}
