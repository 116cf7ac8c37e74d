/** How a side leaves: in order, at once, or with a reset. */
export const leavings = ['end', 'destroy', 'reset'] as const;

export type Leaving = (typeof leavings)[number];

/** What the backend of the fuzz test does with a request. */
export interface Plan {
  /** The bytes of its answer, in base64url. */
  readonly answer: string;
  /** After so many of them it leaves. Default: it stays. */
  readonly cutAt?: number;
  readonly how?: Leaving;
  /** Whether it sends back what comes after the request. */
  readonly echoes: boolean;
}
