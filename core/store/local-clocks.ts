/** The clocks of this process. */
export interface LocalClocks {
  /** Milliseconds from some moment on, which no one sets. */
  steadyMs(): number;
  wallMs(): number;
}

export const ownClocks: LocalClocks = { steadyMs: () => performance.now(), wallMs: () => Date.now() };
