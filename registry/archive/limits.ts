/** How much an image archive may ask of us. What is over a limit is refused as soon as that is seen. */
export interface ArchiveLimits {
  /** All entries together, and so each of them, unpacked; also the body as it is sent. */
  readonly maxBytes: number;
  readonly maxEntries: number;
  readonly maxPathBytes: number;
  /** How many bytes may come out of each byte that goes in. */
  readonly maxRatio: number;
  /** Up to here the ratio is not looked at. */
  readonly ratioFromBytes: number;
  /** Manifests in one image, those of other platforms counted. */
  readonly maxManifests: number;
  /** Archives that this process reads at a time. */
  readonly maxAtATime: number;
  /** Those of one account, so that an account whose uploads stand still keeps others from nothing. */
  readonly maxOfAccount: number;
}

/** The limits of a platform whose operator set none but `maxBytes`. */
export const archiveLimits: Omit<ArchiveLimits, 'maxBytes'> = {
  // An image has at most 127 layers, with up to three files each; an index of twenty platforms fits several times.
  maxEntries: 10_000,
  // `blobs/sha512/` and a digest have 141; `docker save` of old engines has 75.
  maxPathBytes: 1024,
  // Executables and text shrink to a half or a tenth. Deflate cannot reach more than 1,032, zstd can reach 20,000.
  maxRatio: 200,
  // A tar of many small files is mostly zeros, and harmless while it is small.
  ratioFromBytes: 64 * 1024 * 1024,
  // An index has a dozen platforms, and an attestation for each.
  maxManifests: 256,
  // With a zstd window of 8 MiB each, less than a hundred megabytes; more would share the same disk.
  maxAtATime: 8,
  maxOfAccount: 2,
};

/**
 * The memory that a zstd frame may ask for, as a power of two: 8 MiB, which RFC 8878 (section 3.1.1.1.2) has every decoder
 * support, and which all levels of `zstd` up to 19 keep to. `--long` and `--ultra` ask for up to 2 GiB.
 */
export const maxZstdWindowLog = 23;

/** An index of indexes is rare; deeper ones are built to hurt. */
export const maxIndexDepth = 4;

/** Links in archives point to files, old ones of podman to links; longer chains are circles or traps. */
export const maxLinkHops = 8;

/** Tags of one image in an archive: as many as one push may set. */
export const maxArchiveTags = 64;
