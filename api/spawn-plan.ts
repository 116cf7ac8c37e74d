/** From a spawn config to what a backend is made of: defaults filled in, bounds held. */
import type { ResourceLimits, SpawnConfig } from '../contract/connect.ts';
import type { BackendLimits, BackendPlan } from '../model/backend.ts';
import { ApiError } from '../model/api-error.ts';
import type { SpawnRules } from './room.ts';

/** The port of v2 and v1 backends. */
const backendPort = 8080;

/** The window of `cpu_period_percent` where none is given, in microseconds. */
const defaultCpuPeriodMicroseconds = 100_000;

/** What a spawn config decides of a backend. Throws `BadRequest` for what is out of bounds, `MountsDisabled`. */
export function planSpawn(
  rules: SpawnRules,
  config: SpawnConfig,
): Pick<BackendPlan, 'env' | 'limits' | 'mount' | 'maxIdleSeconds' | 'lifetimeLimitSeconds' | 'port'> {
  const { env, mount, resource_limits: limits } = config.executable ?? {};
  if (mount !== undefined && !rules.mountsEnabled) {
    throw new ApiError('MountsDisabled', 'This platform has no folder for mounts, set BERTH_MOUNT_FOLDER on its nodes');
  }
  const maxIdleSeconds = config.max_idle_seconds ?? rules.defaultMaxIdleSeconds;
  const lifetime = config.lifetime_limit_seconds ?? rules.defaultLifetimeSeconds;
  holdBound('spawn.max_idle_seconds', maxIdleSeconds, rules.maxIdleSecondsLimit);
  if (lifetime !== undefined) holdBound('spawn.lifetime_limit_seconds', lifetime, rules.lifetimeSecondsLimit);
  return {
    ...(env && { env }),
    ...(mount !== undefined && { mount }),
    limits: limits ? planLimits(limits) : {},
    maxIdleSeconds,
    ...(lifetime !== undefined && { lifetimeLimitSeconds: lifetime }),
    port: backendPort,
  };
}

function planLimits(limits: ResourceLimits): BackendLimits {
  const { memory_limit_bytes, cpu_period_percent, cpu_period, cpu_time_limit } = limits;
  return {
    ...(memory_limit_bytes !== undefined && { memoryBytes: memory_limit_bytes }),
    ...(cpu_period_percent !== undefined && {
      cpuPeriodPercent: cpu_period_percent,
      cpuPeriodMicroseconds: cpu_period ?? defaultCpuPeriodMicroseconds,
    }),
    ...(cpu_time_limit !== undefined && { cpuTimeSeconds: cpu_time_limit }),
  };
}

function holdBound(field: string, seconds: number, limit: number): void {
  if (seconds > limit) throw new ApiError('BadRequest', `${field}: At most ${limit} on this platform`);
}
