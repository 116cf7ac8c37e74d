/** The fixture of the tests of garbage collection: a registry with a manual clock, and small images to push. */
import { expect } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openTestRegistry, pushBlob, putManifest, sha256 } from '../../test/kit/registry/registry.ts';
import type { TestRegistry, TestRegistryOptions } from '../../test/kit/registry/registry.ts';

export const hourMs = 3_600_000;
export const leaseMs = 24 * hourMs;
export const repository = 'acme/draw';
export const imageType = 'application/vnd.oci.image.manifest.v1+json';
export const layerType = 'application/vnd.oci.image.layer.v1.tar';

export interface GcFixture extends AsyncDisposable {
  readonly registry: TestRegistry;
  readonly clock: ManualClock;
}

/** Opens a registry that collects garbage on request, removes bytes at once, and keeps no untagged images. */
export async function openGcFixture(options: TestRegistryOptions['gc'] = {}): Promise<GcFixture> {
  const clock = new ManualClock(new Date());
  // So long that only the tests collect garbage.
  const gc = { everyMs: 1000 * leaseMs, removalWaitMs: 0, keptUntaggedImages: 0, ...options };
  const registry = await openTestRegistry({ clock, gc });
  return { registry, clock, [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose]() };
}

/** Pushes an image with its own layer. */
export async function push(registry: TestRegistry, reference: string, content = reference) {
  const layer = await pushBlob(registry, repository, `layer of ${content}`);
  const config = await pushBlob(registry, repository, JSON.stringify({ os: 'linux', content }));
  const manifest = {
    schemaVersion: 2,
    mediaType: imageType,
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', ...config },
    layers: [{ mediaType: layerType, ...layer }],
  };
  const digest = sha256(JSON.stringify(manifest));
  const answer = await putManifest(registry, { repository, reference: reference || digest }, manifest);
  expect(answer.status).toBe(201);
  return { digest, layer: layer.digest, size: JSON.stringify(manifest).length };
}

/** The status of a GET in the repository. */
export async function status(registry: TestRegistry, path: string): Promise<number> {
  return (await registry.as(`/v2/${repository}/${path}`)).status;
}

/** Whether an image exists: its manifest and its layer, or neither. */
export async function has(registry: TestRegistry, image: { digest: string; layer: string }): Promise<boolean> {
  const found = await status(registry, `manifests/${image.digest}`);
  const layer = await status(registry, `blobs/${image.layer}`);
  expect(layer).toBe(found);
  return found === 200;
}

export async function blobCount({ blobs }: TestRegistry): Promise<number> {
  let count = 0;
  for await (const _digest of blobs.list()) count += 1;
  return count;
}
