/** The part of an image's configuration that decides how its containers run. */
import type Docker from 'dockerode';

export interface ImageConfig {
  /** Its entrypoint, followed by the arguments. */
  readonly command: readonly string[];
  /** The TCP ports that it EXPOSEs, in ascending order. */
  readonly ports: readonly number[];
  /** The names of the variables that it sets. */
  readonly variables: readonly string[];
  /** `USER`, empty if it sets none. */
  readonly user: string;
  /** The paths that it declares as `VOLUME`. */
  readonly volumes: readonly string[];
  /** `STOPSIGNAL`, a name or a number; empty if it sets none. */
  readonly stopSignal: string;
  /** The processor architecture, as images name it: `amd64`, `arm64`. Empty if it sets none. */
  readonly architecture: string;
  /** Of all its files. */
  readonly sizeBytes: number;
  readonly healthcheck?: ImageHealthcheck;
}

/** The part of `HEALTHCHECK` that shows whether the application works. */
export interface ImageHealthcheck {
  readonly command: readonly string[];
  readonly timeoutMs: number;
}

/** The engine's time limit for a health check that sets none. */
const defaultHealthTimeoutMs = 30_000;

const nanosecondsPerMs = 1_000_000;

/** The engine's description of an image; the types lack some fields. */
interface InspectedConfig {
  readonly Entrypoint?: string | readonly string[] | null;
  readonly Cmd?: readonly string[] | null;
  readonly ExposedPorts?: Readonly<Record<string, unknown>> | null;
  readonly Env?: readonly string[] | null;
  readonly User?: string;
  readonly Volumes?: Readonly<Record<string, unknown>> | null;
  readonly StopSignal?: string;
  readonly Shell?: readonly string[] | null;
  readonly Healthcheck?: { readonly Test?: readonly string[] | null; readonly Timeout?: number } | null;
}

/** Reads the configuration from the engine's description of an image. Engines omit fields, or set them to null or empty values. */
export function imageConfigOf({
  Config,
  Architecture,
  Size,
}: Pick<Docker.ImageInspectInfo, 'Config' | 'Architecture' | 'Size'>): ImageConfig {
  const config = (Config as InspectedConfig | null | undefined) ?? {};
  const healthcheck = healthcheckOf(config);
  return {
    command: [config.Entrypoint ?? [], config.Cmd ?? []].flat(),
    ports: tcpPortsIn(Object.keys(config.ExposedPorts ?? {})),
    variables: (config.Env ?? []).map((variable) => variable.split('=', 1)[0] ?? ''),
    user: config.User ?? '',
    volumes: Object.keys(config.Volumes ?? {}),
    stopSignal: config.StopSignal ?? '',
    architecture: Architecture,
    sizeBytes: Size,
    ...(healthcheck && { healthcheck }),
  };
}

function tcpPortsIn(exposed: readonly string[]): number[] {
  const ports = exposed.flatMap((each) => {
    const [, port] = /^(\d{1,5})(?:\/tcp)?$/i.exec(each) ?? [];
    return port === undefined ? [] : [Number(port)];
  });
  return [...new Set(ports)].filter((port) => port >= 1 && port <= 65_535).toSorted((one, other) => one - other);
}

function healthcheckOf({ Healthcheck, Shell }: InspectedConfig): ImageHealthcheck | undefined {
  const [form, ...words] = Healthcheck?.Test ?? [];
  const timeoutMs = (Healthcheck?.Timeout ?? 0) / nanosecondsPerMs || defaultHealthTimeoutMs;
  if (words.length === 0) return undefined;
  if (form === 'CMD') return { command: words, timeoutMs };
  if (form !== 'CMD-SHELL') return undefined;
  const shell = Shell?.length ? Shell : ['/bin/sh', '-c'];
  return { command: [...shell, ...words], timeoutMs };
}
