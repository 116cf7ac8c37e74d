import type { BackendPlan } from '../backend.ts';

/** The plan of a backend, with default values for fields that a test does not set. */
export function backendPlan(more: Partial<BackendPlan> = {}): BackendPlan {
  return {
    id: 'backend00001',
    account: 'acme',
    service: 'draw',
    environment: 'default',
    cluster: 'default',
    imageDigest: `sha256:${'0'.repeat(64)}`,
    limits: {},
    maxIdleSeconds: 300,
    port: 8080,
    ...more,
  };
}
