import type { SpawnRules } from '../dependencies.ts';

/** Spawn rules for tests that do not depend on them. */
export const spawnRules: SpawnRules = {
  defaultMaxIdleSeconds: 300,
  maxIdleSecondsLimit: 1000,
  lifetimeSecondsLimit: 1000,
  memoryBytesLimit: 16 * 1024 ** 3,
  mountsEnabled: false,
  urlForm: 'path',
  defaultCluster: 'main',
  schedulingTimeoutSeconds: 300,
  imageLeaseSeconds: 86_400,
  prefetchEnabled: false,
  backendHistorySeconds: 30 * 86_400,
  auditDays: 365,
};
