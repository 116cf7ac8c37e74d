/** Limits the data that a container writes to its own file system, if the engine's storage driver can. */

/** The limit of a container. */
export interface DiskLimit {
  readonly writtenBytes: number;
  /** The size of its image. */
  readonly imageBytes: number;
}

/** `written`: the driver counts what a container writes. `all`: the files of its image, too. `none`: it has no limit. */
export type DiskLimitKind = 'written' | 'all' | 'none';

/** The part of the engine's description that shows its storage driver. */
export interface StorageInfo {
  readonly Driver?: string;
  readonly DriverStatus?: readonly (readonly string[])[] | null;
}

/**
 * The limit that the driver may support. Only an attempt shows whether an XFS file system has project quotas. vfs and devicemapper are
 * omitted: they copy images, and count in other ways.
 */
export function diskLimitKind({ Driver, DriverStatus }: StorageInfo): DiskLimitKind {
  if (Driver === 'btrfs') return 'all';
  if (Driver === 'zfs') return 'written';
  const backing = DriverStatus?.find(([name]) => name === 'Backing Filesystem')?.[1];
  return Driver === 'overlay2' && backing === 'xfs' ? 'written' : 'none';
}

/** The engine's options for the storage of a container. */
export function storageOptions(kind: DiskLimitKind, limit: DiskLimit | undefined): Record<string, string> | undefined {
  if (kind === 'none' || !limit) return undefined;
  return { size: String(limit.writtenBytes + (kind === 'all' ? limit.imageBytes : 0)) };
}

/** The messages with which drivers refuse the options: no project quotas, no such option, or a limit of their own. */
export const storageRefused = /storage-opt|storage option|storage size|quota/i;
