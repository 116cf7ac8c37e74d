import { describe, expect, it } from 'vitest';
import { parseCgroup } from './cgroup.ts';

describe('parseCgroup', () => {
  it('finds the folders of version 1', () => {
    const text = '12:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/system.slice\n';
    expect(parseCgroup(text)).toEqual({
      version: 1,
      memory: '/sys/fs/cgroup/memory/docker/abc',
      cpu: '/sys/fs/cgroup/cpuacct/docker/abc',
    });
  });

  it('finds the folder of version 2', () => {
    expect(parseCgroup('0::/system.slice/docker-abc.scope\n')).toEqual({
      version: 2,
      folder: '/sys/fs/cgroup/system.slice/docker-abc.scope',
    });
  });

  it('finds nothing in an empty text', () => {
    expect(parseCgroup('')).toBeUndefined();
  });
});
