// Runs on every engine
import { expect, it } from 'vitest';
import type { BackendPlan } from '../../model/backend.ts';
import { describeWorker, fetchText } from '../testing/fixture.ts';

/** Runs commands, and serves the exit code of each: `<name> <code>`. */
function attempts(commands: Readonly<Record<string, string>>): string {
  const lines = Object.entries(commands).map(([name, command]) => `{ ${command}; } 2>>err.txt; echo ${name} $?`);
  return `{ cat /proc/self/status; ${lines.join('; ')}; } > out.txt`;
}

const serve = 'exec httpd -f -p $PORT';

/** Commands that an image that starts as root may run. */
const usual = {
  chown: 'touch own && chown 1000:1000 own && chmod 4755 own',
  drop: 'echo ada:x:1000:1000::/:/bin/sh > /etc/passwd && su ada -c "id -u" > user.txt',
  foreign: 'chown 0:0 own && rm own',
  kill: 'su ada -c "sleep 99 & echo \\$!" > pid.txt && kill -9 $(cat pid.txt)',
};

/** Commands that fail in every container. */
const hostile = {
  device: 'mknod device b 8 0',
  chroot: 'chroot / true',
  raw: 'arping -c 1 -w 1 -I eth0 10.0.0.1',
  mount: 'mount -t tmpfs none /tmp',
  bind: 'mount -o bind /bin /tmp',
  sysctl: 'echo 1 > /proc/sys/kernel/panic',
  sysrq: 'echo h > /proc/sysrq-trigger',
  cgroup: 'mkdir /sys/fs/cgroup/memory/x',
  namespace: 'unshare -Ur true',
  hostname: 'hostname other',
  module: 'insmod /bin/busybox',
};

await describeWorker('the security profile of a container', (fixture) => {
  const outputOf = async (script: string, plan: Partial<BackendPlan> = {}, config: object = {}) => {
    const { images } = fixture.platform;
    const imageDigest = await images.addConfigured({ Cmd: ['/bin/sh', '-c', script], ...config });
    const id = await fixture.platform.schedule({ imageDigest, ...plan });
    await fixture.platform.until(id, 'ready');
    const output = await fetchText(fixture.platform, id, '/out.txt');
    return { id, output, codes: codesIn(output) };
  };

  it('lets an image start as root and continue as another user by default', async () => {
    const { id, output, codes } = await outputOf(
      `${attempts({ ...usual, ...hostile })}; exec httpd -f -p 80 -u 1000:1000`,
      {
        port: 80,
      },
    );
    expect(output).toMatch(/^CapEff:\s+0+5fb$/m);
    expect(output).toMatch(/^CapBnd:\s+0+5fb$/m);
    expect(output).toMatch(/^NoNewPrivs:\s+1$/m);
    expect(output).toMatch(/^Seccomp:\s+2$/m);
    for (const name of Object.keys(usual)) expect([name, codes[name]]).toEqual([name, 0]);
    for (const name of Object.keys(hostile)) expect([name, codes[name]]).not.toEqual([name, 0]);
    expect(await fetchText(fixture.platform, id, '/user.txt')).toBe('1000\n');
    expect((await fixture.platform.containerOf(id).inspect()).HostConfig).toMatchObject({ Privileged: false });
    await fixture.platform.end(id);
  });

  it('"none" leaves no capability', async () => {
    const { id, output, codes } = await outputOf(`${attempts({ ...usual, ...hostile })}; ${serve}`, {
      securityProfile: 'none',
    });
    expect(output).toMatch(/^CapEff:\s+0+$/m);
    expect(output).toMatch(/^CapBnd:\s+0+$/m);
    for (const name of ['chown', 'drop', ...Object.keys(hostile)]) {
      expect([name, codes[name]]).not.toEqual([name, 0]);
    }
    await fixture.platform.end(id);
  });

  it('"root-less" leaves no capability, no root, and no writable folders except those in memory', async () => {
    const script = `cd /tmp; ${attempts({ write: 'touch /www/x', temporary: 'touch /tmp/x', run: 'touch /run/x', ...hostile })}`;
    const { id, output, codes } = await outputOf(`${script}; ${serve}`, { securityProfile: 'root-less' });
    expect(output).toMatch(/^CapEff:\s+0+$/m);
    expect(output).toMatch(/^Uid:\s+65534\s/m);
    expect(output).toMatch(/^Gid:\s+65534\s/m);
    expect([codes['temporary'], codes['run']]).toEqual([0, 0]);
    for (const name of ['write', ...Object.keys(hostile)]) expect([name, codes[name]]).not.toEqual([name, 0]);
    await fixture.platform.end(id);
  });
});

function codesIn(output: string): Readonly<Record<string, number>> {
  return Object.fromEntries(Array.from(output.matchAll(/^(\w+) (\d+)$/gm), ([, name, code]) => [name, Number(code)]));
}
