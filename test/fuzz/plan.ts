/** The ways to disconnect: after sending all bytes, at once, or with a reset. */
export const disconnects = ['end', 'destroy', 'reset'] as const;

export type Disconnect = (typeof disconnects)[number];

/** How the backend of the fuzz test handles a request. */
export interface Plan {
  /** The bytes of its response, in base64url. */
  readonly answer: string;
  /** The number of response bytes after which it disconnects. Default: it stays connected. */
  readonly cutAt?: number;
  readonly how?: Disconnect;
  /** Whether it echoes the bytes after the request. */
  readonly echoes: boolean;
}
