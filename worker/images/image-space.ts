/** Whether an image that nobody has asked for yet may take some of the space where the engine keeps its images. */
import { statfs } from 'node:fs/promises';

/** The disk on which a folder is. */
export interface Disk {
  readonly folder: string;
  /** For all but root, who may fill a disk to the last byte. */
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** What is missing on a disk: more is needed than may be taken. */
export interface SpaceLack {
  readonly folder: string;
  readonly freeBytes: number;
  readonly reserveBytes: number;
  readonly neededBytes: number;
}

/**
 * Layers hold programs and their libraries, which gzip makes about three times smaller. Beside what is unpacked lies what was
 * fetched: with Docker's own store of images until its layer is unpacked, with containerd's for good. An image whose layers are
 * here in part already needs less; which those are the engine does not tell before it is asked to fetch.
 */
const bytesOnDiskPerByte = 3 + 1;

/**
 * What somebody does ask for has to fit: other images, what backends write, logs, documents. A tenth is what monitoring commonly
 * warns at, and enough for that on a small disk.
 */
const reserveShare = 0.1;

/** On a large disk a tenth would lie idle: this much are several large images, and time for whoever is warned. */
const maxReserveBytes = 10 * 1024 ** 3;

/** What an image needs on the disk, while it is being fetched and afterwards. */
export function bytesOnDisk(compressedBytes: number): number {
  return compressedBytes * bytesOnDiskPerByte;
}

/**
 * The disks of these folders that can be seen from here. In a container none can; then the disk of its volume, on which the
 * engine keeps volumes and images alike, unless somebody has mounted a folder of another disk.
 */
export async function disksOf(folders: readonly string[], volume: string): Promise<Disk[]> {
  const seen = await seenOf(folders);
  return seen.length > 0 || folders.length === 0 ? seen : await seenOf([volume]);
}

async function seenOf(folders: readonly string[]): Promise<Disk[]> {
  const disks = await Promise.all(
    folders.map(async (folder) => {
      const found = await statfs(folder).catch(() => undefined);
      return found && { folder, freeBytes: found.bavail * found.bsize, totalBytes: found.blocks * found.bsize };
    }),
  );
  return disks.filter((disk) => disk !== undefined);
}

/** The first disk that would have less left than its reserve; none if nothing is known of any. */
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
