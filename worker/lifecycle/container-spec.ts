import type { Backend, BackendLimits } from '../../model/backend.ts';
import { expectedPorts } from '../../model/backend-port.ts';
import type { ContainerSpec } from '../docker/containers.ts';
import type { ImageConfig } from '../docker/image-config.ts';
import { imageReference } from '../images/pulls.ts';
import type { WorkerSettings } from '../settings.ts';
import { containerSecurity } from './container-security.ts';
import { defaultVariables } from './default-variables.ts';

/** The default of the engine and of the API. */
const defaultCpuPeriodMicroseconds = 100_000;

/** The minimum of the kernel. */
const minCpuQuotaMicroseconds = 1_000;

interface ContainerParts {
  readonly mountFolder?: string | undefined;
  readonly leaseFolder?: string | undefined;
  /** The engine's path of the port helper. */
  readonly portHelper?: string | undefined;
  readonly image: ImageConfig;
  /** Default: those of the machine. */
  readonly dnsServers?: readonly string[] | undefined;
  /** The backend's variables, decrypted. Default: those that are not encrypted. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The specification of a backend's container, without its address. */
export function containerSpec(
  backend: Backend,
  settings: WorkerSettings,
  { mountFolder, leaseFolder, portHelper, image, dnsServers, env = backend.env ?? {} }: ContainerParts,
): Omit<ContainerSpec, 'address'> {
  const memoryBytes = memoryLimitOf(backend.limits, settings);
  const cpu = cpuQuota(backend.limits, settings);
  return {
    backend: backend.id,
    image: imageReference(settings.registryHost, backend),
    env: { ...defaultVariables(image, env), ...env, ...platformVariables(backend, image) },
    labels: { 'berth.account': backend.account, 'berth.service': backend.service },
    ...(memoryBytes > 0 && { memoryBytes }),
    ...(cpu && { cpu }),
    pidsLimit: settings.pidsLimit,
    ...(settings.diskBytesLimit !== undefined && {
      disk: { writtenBytes: settings.diskBytesLimit, imageBytes: image.sizeBytes },
    }),
    ...(dnsServers && { dnsServers }),
    ...containerSecurity(backend.securityProfile ?? 'default', image, settings.capabilities),
    ...(settings.runtime !== undefined && { runtime: settings.runtime }),
    ...(mountFolder !== undefined && { mountFolder }),
    ...(leaseFolder !== undefined && { leaseFolder, command: image.command }),
    ...(portHelper !== undefined && { portHelper }),
  };
}

/** A backend's memory limit in bytes; 0 if it has none. */
export function memoryLimitOf({ memoryBytes }: BackendLimits, { defaultMemoryBytes }: WorkerSettings): number {
  return memoryBytes ?? defaultMemoryBytes ?? 0;
}

/** The variables of the platform, which override those of the user. */
function platformVariables(backend: Backend, image: ImageConfig): Record<string, string> {
  return {
    PORT: String(expectedPorts(backend.port, image.ports).port),
    SESSION_BACKEND_ID: backend.id,
    ...(backend.key !== undefined && { SESSION_BACKEND_KEY: backend.key }),
    ...(backend.fencingToken !== undefined && { SESSION_BACKEND_FENCING_TOKEN: String(backend.fencingToken) }),
  };
}

function cpuQuota(limits: BackendLimits, { defaultCpuPercent }: WorkerSettings): ContainerSpec['cpu'] {
  const percent = limits.cpuPeriodPercent ?? defaultCpuPercent;
  if (percent === undefined) return undefined;
  const periodMicroseconds = limits.cpuPeriodMicroseconds ?? defaultCpuPeriodMicroseconds;
  const quota = Math.round((periodMicroseconds * percent) / 100);
  return { periodMicroseconds, quotaMicroseconds: Math.max(quota, minCpuQuotaMicroseconds) };
}
