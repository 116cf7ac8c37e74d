/** Checks whether the disk with the engine's images has enough space to prefetch an image. */
import { statfs } from 'node:fs/promises';

/** The disk with a folder. */
export interface Disk {
  readonly folder: string;
  /** For users other than root, for whom some space is reserved. */
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** A disk with too little space for an image. */
export interface SpaceLack {
  readonly folder: string;
  readonly freeBytes: number;
  readonly reserveBytes: number;
  readonly neededBytes: number;
}

/**
 * gzip makes programs and their libraries, of which layers consist, about three times smaller. The disk also holds the compressed
 * layer: with Docker's own image store until it is unpacked, with containerd's permanently. An image that shares layers with others
 * needs less, but the engine does not report which layers it has before it pulls.
 */
const bytesOnDiskPerByte = 3 + 1;

/**
 * Reserved for what the platform must store: images that backends need, data of backends, logs, documents. Monitoring commonly
 * warns at a tenth, which is enough for that on a small disk.
 */
const reserveShare = 0.1;

/** On a large disk a tenth is more than needed: this holds several large images, and leaves an operator time to react. */
const maxReserveBytes = 10 * 1024 ** 3;

/** The disk space that an image needs, during its pull and afterwards. */
export function bytesOnDisk(compressedBytes: number): number {
  return compressedBytes * bytesOnDiskPerByte;
}

/**
 * The disks of these folders, as far as this process sees them. In a container it sees none: then the disk of its volume counts,
 * on which the engine also keeps images, unless the operator mounted a folder of another disk.
 */
export async function disksOf(folders: readonly string[], volume: string): Promise<Disk[]> {
  const visible = await visibleOf(folders);
  return visible.length > 0 || folders.length === 0 ? visible : await visibleOf([volume]);
}

async function visibleOf(folders: readonly string[]): Promise<Disk[]> {
  const disks = await Promise.all(
    folders.map(async (folder) => {
      const found = await statfs(folder).catch(() => undefined);
      return found && { folder, freeBytes: found.bavail * found.bsize, totalBytes: found.blocks * found.bsize };
    }),
  );
  return disks.filter((disk) => disk !== undefined);
}

/** The first disk that would have less left than its reserve; `undefined` if there is none or no disk is known. */
export function findLack(
  disks: readonly Disk[],
  { neededBytes, reserveBytes }: { readonly neededBytes: number; readonly reserveBytes?: number | undefined },
): SpaceLack | undefined {
  for (const { folder, freeBytes, totalBytes } of disks) {
    const reserve = reserveBytes ?? Math.min(Math.floor(totalBytes * reserveShare), maxReserveBytes);
    if (freeBytes - neededBytes < reserve) return { folder, freeBytes, reserveBytes: reserve, neededBytes };
  }
  return undefined;
}
