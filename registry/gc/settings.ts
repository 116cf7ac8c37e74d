/** How garbage is collected. */
export interface CollectionSettings {
  /** How often, from the end of one collection to the next. */
  readonly everyMs: number;
  /** How long content stays that nothing refers to, after it was last pushed, mounted, or a client was told of it. */
  readonly leaseMs: number;
  /** How long bytes stay after it was found that no repository has them. */
  readonly removalWaitMs: number;
  /** How many untagged images each service keeps: the last ones pushed. */
  readonly keptUntaggedImages: number;
}
