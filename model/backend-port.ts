/** The port on which the application in a container should listen. */

/** The default port, if neither the service, the request nor the image has another. */
const defaultPort = 8080;

export interface ExpectedPorts {
  /** The value of `PORT`. */
  readonly port: number;
  /** Used if it is open while `port` stays closed: the image ignores `PORT`. */
  readonly otherwise?: number;
}

/**
 * The ports of a container. `PORT` cannot change once its program runs, so it is decided before: the port that the service or the request
 * has configured, or else the only port that the image EXPOSEs, or else 8080. So the program is reached on the exposed port, whether or
 * not it reads `PORT`. A program that listens on 8080 although its image EXPOSEs another port is reached on 8080.
 */
export function expectedPorts(configured: number | undefined, exposed: readonly number[]): ExpectedPorts {
  if (configured !== undefined) return { port: configured };
  const [only] = exposed;
  if (only === undefined || exposed.length > 1 || only === defaultPort) return { port: defaultPort };
  return { port: only, otherwise: defaultPort };
}
