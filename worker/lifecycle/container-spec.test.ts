import { describe, expect, it } from 'vitest';
import { newBackend } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { containerSpec } from './container-spec.ts';
import { mountName } from './mounts.ts';
import type { ImageConfig } from '../docker/image-config.ts';
import type { WorkerSettings } from '../settings.ts';
import { backendPlan } from '../../model/testing/backend-plan.ts';

const settings: WorkerSettings = {
  node: 'n',
  cluster: 'default',
  registryHost: 'registry:5000',
  startTimeoutSeconds: 300,
  prefetchEnabled: true,
  pullTimeoutSeconds: 600,
  stopGraceSeconds: 30,
  pidsLimit: 512,
  capabilities: ['CHOWN'],
  maxConcurrentStarts: 4,
  dataFolder: '/nowhere',
  leaseFolder: '/nowhere/leases',
  keptLogs: { folder: '/nowhere', maxBytes: 0, seconds: 0, totalBytes: 0 },
};

const image: ImageConfig = {
  command: ['/run'],
  ports: [],
  variables: [],
  user: '',
  volumes: [],
  stopSignal: '',
  architecture: 'amd64',
  sizeBytes: 5,
};

function backendWith(more: Partial<Backend>): Backend {
  const plan = backendPlan({ imageDigest: `sha256:${'a'.repeat(64)}` });
  return { ...newBackend(plan, new Date(0)), ...more };
}

describe('containerSpec', () => {
  it('names the image by digest, in the registry of this platform', () => {
    expect(containerSpec(backendWith({}), settings, { image }).image).toBe(
      `registry:5000/acme/draw@sha256:${'a'.repeat(64)}`,
    );
  });

  it('lets variables of the platform override those of the user', () => {
    const env = { PORT: '1', SESSION_BACKEND_KEY: 'forged', SESSION_BACKEND_FENCING_TOKEN: '9', MORE: 'x' };
    const keyed = containerSpec(backendWith({ env, key: 'k', fencingToken: 7 }), settings, { image });
    expect(keyed.env).toEqual({
      PORT: '8080',
      SESSION_BACKEND_ID: 'backend00001',
      SESSION_BACKEND_KEY: 'k',
      SESSION_BACKEND_FENCING_TOKEN: '7',
      MORE: 'x',
      HOST: '0.0.0.0',
    });
  });

  it('sets PORT to the configured port, or else to the only one that the image exposes', () => {
    const portOf = (port: number | undefined, ports: readonly number[]) => {
      const { port: _none, ...backend } = backendWith({});
      const configured = port === undefined ? backend : { ...backend, port };
      return containerSpec(configured, settings, { image: { ...image, ports } }).env['PORT'];
    };
    expect([portOf(3000, [80]), portOf(undefined, [80]), portOf(undefined, [80, 443])]).toEqual(['3000', '80', '8080']);
  });

  it('sets HOST unless the image or the user does', () => {
    const envOf = (env: Record<string, string>, variables: readonly string[]) =>
      containerSpec(backendWith({ env }), settings, { image: { ...image, variables } }).env;
    expect(envOf({}, ['PATH'])).toMatchObject({ HOST: '0.0.0.0' });
    expect(envOf({ HOST: '::1' }, [])).toMatchObject({ HOST: '::1' });
    expect(envOf({}, ['HOST'])).not.toHaveProperty('HOST');
  });

  it('computes the CPU quota from percent and period, and uses the memory limit of the platform by default', () => {
    const cpuOf = (limits: Backend['limits']) => containerSpec(backendWith({ limits }), settings, { image }).cpu;
    expect(cpuOf({})).toBeUndefined();
    expect(cpuOf({ cpuPeriodPercent: 50 })).toEqual({ periodMicroseconds: 100_000, quotaMicroseconds: 50_000 });
    expect(cpuOf({ cpuPeriodPercent: 25, cpuPeriodMicroseconds: 20_000 })).toEqual({
      periodMicroseconds: 20_000,
      quotaMicroseconds: 5_000,
    });
    expect(cpuOf({ cpuPeriodPercent: 0 })?.quotaMicroseconds).toBe(1_000);
    const limited = { ...settings, defaultCpuPercent: 150 };
    expect(containerSpec(backendWith({ limits: {} }), limited, { image }).cpu?.quotaMicroseconds).toBe(150_000);
    expect(containerSpec(backendWith({ limits: { cpuPeriodPercent: 50 } }), limited, { image }).cpu).toEqual(
      cpuOf({ cpuPeriodPercent: 50 }),
    );
    const memoryOf = (limits: Backend['limits']) =>
      containerSpec(backendWith({ limits }), { ...settings, defaultMemoryBytes: 5e8 }, { image }).memoryBytes;
    expect(memoryOf({})).toBe(5e8);
    expect(memoryOf({ memoryBytes: 1e8 })).toBe(1e8);
    expect(containerSpec(backendWith({}), settings, { image })).not.toHaveProperty('memoryBytes');
  });
});

describe('mountName', () => {
  const nameOf = (more: Partial<Backend>) => mountName(backendWith(more));

  it('is a plain name for any key or path', () => {
    for (const text of ['../../etc', '/etc', '..', 'a\0b', '--privileged', 'ü'.repeat(200)]) {
      expect(nameOf({ mount: true, key: text })).toMatch(/^[a-f0-9]{64}$/);
      expect(nameOf({ mount: text })).toMatch(/^[a-f0-9]{64}$/);
    }
  });

  it('is the same for the same key, and differs by account, service, key, and between keys and paths', () => {
    const key = { mount: true, key: 'k' } as const;
    expect(nameOf({ ...key, id: 'backend00002' })).toBe(nameOf(key));
    expect(nameOf({ mount: 'k', key: 'other' })).toBe(nameOf({ mount: 'k' }));
    const names = [
      nameOf(key),
      nameOf({ ...key, account: 'else' }),
      nameOf({ ...key, service: 'else' }),
      nameOf({ ...key, key: 'l' }),
      nameOf({ mount: 'k' }),
      nameOf({ mount: true }),
      nameOf({ mount: true, id: 'backend00002' }),
    ];
    expect(new Set(names).size).toBe(names.length);
  });
});
