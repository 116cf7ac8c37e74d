/** The port on which the application in a container is expected. */

/** What applications listen on unless the service, the request or the image says otherwise. */
const usualPort = 8080;

export interface ExpectedPorts {
  /** The value of `PORT`. */
  readonly port: number;
  /** Counts if it is open while `port` stays closed: the image ignores `PORT`. */
  readonly otherwise?: number;
}

/**
 * The ports of a container. `PORT` cannot change once its program runs, so it is decided before: what the service or the request has
 * configured, or else the only port that the image EXPOSEs, or else 8080. So an image that reads `PORT` listens where it says that it
 * does, and so does an image that does not. An image that EXPOSEs another port and listens on 8080 all the same is reached there.
 */
export function expectedPorts(configured: number | undefined, exposed: readonly number[]): ExpectedPorts {
  if (configured !== undefined) return { port: configured };
  const [only] = exposed;
  if (only === undefined || exposed.length > 1 || only === usualPort) return { port: usualPort };
  return { port: only, otherwise: usualPort };
}
