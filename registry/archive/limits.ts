/** Limits on an image archive. An archive is rejected as soon as it exceeds one. */
export interface ArchiveLimits {
  /** Of all entries together, unpacked, and of the body as it is sent. */
  readonly maxBytes: number;
  readonly maxEntries: number;
  readonly maxPathBytes: number;
  /** Unpacked bytes per sent byte. */
  readonly maxRatio: number;
  /** The ratio is not checked for smaller archives. */
  readonly ratioFromBytes: number;
  /** Manifests in one image, including those of other platforms. */
  readonly maxManifests: number;
  /** Archives that a process reads at a time. */
  readonly maxAtATime: number;
  /** Archives of one account at a time, so that stalled uploads of one account do not block others. */
  readonly maxOfAccount: number;
}

/** The limits that operators cannot set. */
export const archiveLimits: Omit<ArchiveLimits, 'maxBytes'> = {
  // An image has at most 127 layers, with up to three files each; several indexes of twenty platforms fit.
  maxEntries: 10_000,
  // `blobs/sha512/` with a digest has 141; `docker save` of old engines writes 75.
  maxPathBytes: 1024,
  // Executables and text compress to a half or a tenth. Deflate cannot exceed 1,032, zstd can reach 20,000.
  maxRatio: 200,
  // A tar of many small files is mostly zeros, and harmless if it is small.
  ratioFromBytes: 64 * 1024 * 1024,
  // An index has a dozen platforms, and an attestation for each.
  maxManifests: 256,
  // With a zstd window of 8 MiB each, less than a hundred megabytes. More would not be faster on the same disk.
  maxAtATime: 8,
  maxOfAccount: 2,
};

/**
 * The memory that a zstd frame may require, as a power of two: 8 MiB, which RFC 8878 (section 3.1.1.1.2) requires every decoder
 * to support, and which suffices for all levels of `zstd` up to 19. `--long` and `--ultra` require up to 2 GiB.
 */
export const maxZstdWindowLog = 23;

/** Links in archives point to files, or to links in archives of old podman; longer chains are circles or attacks. */
export const maxLinkHops = 8;

/** The most tags of one image in an archive, the same as for one push. */
export const maxArchiveTags = 64;
