/** How much of the registry one account, or one address, may take. In every limit 0 stands for none. */
export interface RegistryLimits {
  /** Bytes that an account may store, each blob counted once. */
  readonly accountBytes: number;
  /** Bytes that one blob may have. */
  readonly blobBytes: number;
  /** Upload sessions that an account may have open. */
  readonly openUploads: number;
  /** Requests of one account, or of one address without an account. */
  readonly requestsPerSecond: number;
  /** Logins of one user that may fail from one address. */
  readonly failedLoginsPerMinute: number;
}
