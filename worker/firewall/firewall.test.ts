// Takes about 30 s
// Runs on every engine
/** Connections from containers and to containers, with the firewall. */
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Egress } from '../../contract/egress.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { advance, assign, backends } from '../../model/backend.ts';
import { EngineError } from '../docker/engine-error.ts';
import { openOutsideNetwork, outsideName, outsidePort } from '../../test/kit/machine/outside-network.ts';
import { fetchText, leftBehind, openWorkerFixture } from '../testing/fixture.ts';
import { oneOnFirstEngine } from '../testing/test-engine.ts';
import { openTestPlatform, polite, whyNoTests } from '../testing/test-platform.ts';
import { iptables } from './iptables.ts';
import type { TestPlatform } from '../testing/test-platform.ts';

/** Addresses of other machines: on the internet, in a private network, and of a cloud's metadata. Other runs use other addresses. */
const number = randomInt(1, 254);
const [internet, intranet, metadata] = [`198.51.100.${number}`, `10.254.253.${number}`, `169.254.${number}.254`];

const why = (await whyNoTests()) ?? (process.getuid?.() === 0 ? undefined : '(only root can)');

describe.skipIf(why !== undefined)(`the firewall on a real engine ${why ?? ''}`, () => {
  const parts = new AsyncDisposableStack();
  let platform: TestPlatform;
  /** The addresses of a service of this machine, which listens on all of them. */
  let ownService: string[];

  beforeAll(async () => {
    parts.use(await openOutsideNetwork([internet, intranet, metadata]));
    const server = createServer((_request, response) => response.end('reached\n'));
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    parts.defer(() => server.close().closeAllConnections());
    ({ platform } = parts.use(await openWorkerFixture({ firewall: 'required' })));
    const { port } = server.address() as AddressInfo;
    const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
    const addresses = own
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address);
    ownService = [...addresses.slice(0, 3), gatewayOf(platform)].map((address) => `${address}:${port}`);
  });
  afterAll(() => parts.disposeAsync());

  /** Starts a backend, and returns the targets that it reaches. It waits for those that it can reach: a busy machine answers late. */
  const reachedFrom = async (
    egress: Egress | undefined,
    { reachable, blocked }: { reachable: readonly string[]; blocked: readonly string[] },
  ) => {
    const attempt = (target: string, seconds: number) => `(${get(target, seconds)} && echo ${target} >> out.txt) &`;
    const attempts = [
      ...reachable.map((target) => attempt(target, 30)),
      ...blocked.map((target) => attempt(target, 3)),
    ];
    const imageDigest = await platform.images.addConfigured({
      Cmd: ['/bin/sh', '-c', `: > out.txt; ${attempts.join(' ')} wait; exec httpd -f -p $PORT`],
    });
    const id = await platform.schedule({ imageDigest, ...(egress !== undefined && { egress }) });
    await platform.until(id, 'ready');
    const reached = (await fetchText(platform, id, '/out.txt')).split('\n').filter(Boolean).toSorted();
    return { id, reached };
  };
  const [onInternet = '', onIntranet = '', onMetadata = ''] = [internet, intranet, metadata].map(
    (address) => `${address}:${outsidePort}`,
  );

  it('lets backends reach other machines, but not their own, each other, or metadata', async () => {
    const neighbour = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    const { address } = await platform.until(neighbour, 'ready');
    const reachable = [onIntranet, onInternet];
    const blocked = [onMetadata, ...ownService, `${address?.host}:${address?.port}`];
    const { id, reached } = await reachedFrom(undefined, { reachable, blocked });
    expect(reached).toEqual(reachable);
    await Promise.all([platform.end(id), platform.end(neighbour)]);
  });

  it('leaves backends without an IPv6 address, so that they reach no service over IPv6, metadata included', async () => {
    const imageDigest = await platform.images.addConfigured({
      Cmd: ['/bin/sh', '-c', 'cat /proc/net/if_inet6 /proc/net/ipv6_route > out.txt; exec httpd -f -p $PORT'],
    });
    const id = await platform.schedule({ imageDigest });
    await platform.until(id, 'ready');
    const interfaces = (await fetchText(platform, id, '/out.txt')).split('\n').filter(Boolean);
    expect(interfaces.filter((line) => !line.endsWith(' lo'))).toEqual([]);
    await platform.end(id);
  });

  it.for(oneOnFirstEngine)(
    'blocks the egress of a backend whose service sets "none", also after its worker was replaced',
    async () => {
      await using other = await openTestPlatform();
      const worker = await other.openWorker({ settings: { firewall: 'required' } });
      const script = `while :; do ${get(onInternet, 3)}; sleep 0.2; done > out.txt & exec httpd -f -p $PORT`;
      const imageDigest = await other.images.addConfigured({ Cmd: ['/bin/sh', '-c', script] });
      const ids = [];
      for (const egress of ['none', 'open'] as const) ids.push(await other.schedule({ imageDigest, egress }));
      const [none = '', open = ''] = ids;
      for (const id of ids) await other.until(id, 'ready');
      const outputOf = async (id: string) => await fetchText(other, id, '/out.txt');
      await expect.poll(() => outputOf(open)).toContain(internet);
      await worker[Symbol.asyncDispose]();
      expect(rulesOf(other)).not.toEqual([]);
      await using next = await other.openWorker({ settings: { firewall: 'required' } });
      const later = await other.schedule({ imageDigest, egress: 'open' });
      await other.until(later, 'ready');
      await expect.poll(() => outputOf(later)).toContain(internet);
      expect(await outputOf(none)).toBe('');
      await Promise.all([none, open, later].map((id) => other.end(id)));
      expect(await leftBehind(other)).toEqual([]);
      await next[Symbol.asyncDispose]();
      expect(rulesOf(other)).toEqual([]);
    },
  );

  it.for(oneOnFirstEngine)(
    'blocks the egress of a backend that a worker was starting when it ended, also if its start was under way',
    async () => {
      await using other = await openTestPlatform();
      const { containers } = other.engine.engine;
      const imageDigest = await other.images.add(polite.replace('$PORT', '8080'));
      await other.pull(imageDigest);
      // Its clock is stopped, and so is every pass.
      const worker = await other.openWorker({ settings: { firewall: 'required' }, clock: new ManualClock() });
      const id = await other.schedule({ imageDigest, egress: 'none' }, false);
      await other.store.update(backends, id, (backend) => advance(assign(backend, other.node), 'starting', new Date()));
      await other.leaveCreated(id, imageDigest);
      await worker[Symbol.asyncDispose]();
      expect(rulesOf(other)).not.toEqual([]);
      await other.containerOf(id).start();
      // As in a list from a moment before the start.
      const list = containers.list.bind(containers);
      const listEarlier = async () => (await list()).map((each) => ({ ...each, phase: 'created' as const }));
      vi.spyOn(containers, 'list').mockImplementation(listEarlier);
      await using _next = await other.openWorker({ settings: { firewall: 'required' } });
      const { address } = await other.until(id, 'ready');
      expect(rulesOf(other).filter((rule) => rule.includes(` ${address?.host}/32 `))).not.toEqual([]);
      await other.end(id);
      expect(await leftBehind(other)).toEqual([]);
    },
  );

  it.for(oneOnFirstEngine)('writes its rules again if another program has deleted them', async () => {
    const hooks = () => rulesOf(platform).filter((rule) => /^-A (?:PREROUTING|OUTPUT) /.test(rule));
    const before = hooks();
    for (const hook of new Set(before)) {
      expect(await iptables('ipv4', ['-t', 'mangle', ...hook.replace('-A', '-D').split(' ')])).toBe(true);
    }
    expect(hooks()).toHaveLength(before.length - 2);
    const blocked = [onInternet, onIntranet, onMetadata];
    const { id, reached } = await reachedFrom('none', { reachable: [], blocked });
    expect(reached).toEqual([]);
    expect(hooks().toSorted()).toEqual(before.toSorted());
    await platform.end(id);
  });

  it.for(oneOnFirstEngine)(
    'keeps no rules for an address that a backend could not use: another container has it, or its network was removed',
    async () => {
      await using other = await openTestPlatform();
      const { containers } = other.engine.engine;
      await using _worker = await other.openWorker({ settings: { firewall: 'required' } });
      const imageDigest = await other.images.add(polite);
      const errors = [new EngineError('address-taken', 'taken'), new EngineError('no-network', 'removed')];
      const tried: string[] = [];
      const start = containers.start.bind(containers);
      vi.spyOn(containers, 'start').mockImplementation(async (id) => {
        tried.push((await containers.inspect(id))?.address ?? '');
        const error = errors.shift();
        if (error) throw error;
        await start(id);
      });
      const id = await other.schedule({ imageDigest, egress: 'none' });
      const { address } = await other.until(id, 'ready');
      expect(tried).toHaveLength(3);
      const limited = rulesOf(other).flatMap((rule) => / -s (\S+)\/32 /.exec(rule)?.[1] ?? []);
      expect(limited).toEqual([address?.host]);
      await other.end(id);
    },
  );

  /** Looks a name up in a backend, and returns the output. */
  const lookedUp = async (from: TestPlatform, egress: Egress, isAnswered = false) => {
    const script = `timeout ${isAnswered ? 25 : 3} nslookup outside.example > out.txt 2>&1; echo "exited with $?" >> out.txt; exec httpd -f -p $PORT`;
    const imageDigest = await from.images.addConfigured({ Cmd: ['/bin/sh', '-c', script] });
    const id = await from.schedule({ imageDigest, egress });
    await from.until(id, 'ready');
    const text = await fetchText(from, id, '/out.txt');
    await from.end(id);
    return text;
  };
  // An error from new engines; old ones do not answer.
  const failed = /^exited with (?:1|143)$/m;

  it('lets a backend use only the DNS servers in its networks', async () => {
    await using other = await openTestPlatform();
    const settings = { firewall: 'required', dnsServers: [intranet] } as const;
    await using _worker = await other.openWorker({ settings });
    const [open, listed, elsewhere, none] = await Promise.all(
      (['open', [`${intranet}/32`], ['198.51.100.0/24'], 'none'] as const).map((egress, i) =>
        lookedUp(other, typeof egress === 'string' ? egress : [...egress], i < 2),
      ),
    );
    expect(open).toContain(outsideName.address);
    expect(listed).toContain(outsideName.address);
    for (const text of [elsewhere, none]) {
      expect(text).toMatch(failed);
      expect(text).not.toContain(outsideName.address);
    }
  });

  it('asks no DNS server of the machine for a backend whose egress is limited, not even one at loopback', async ({
    skip,
  }) => {
    const asked: string[] = [];
    const server = await bindDns((query) => void asked.push(query.toString('latin1')));
    if (!server) skip('another DNS server has the port');
    using _closed = { [Symbol.dispose]: () => void server?.close() };
    for (const egress of ['none', ['10.254.253.0/24', '127.0.0.0/8']] as Egress[])
      expect(await lookedUp(platform, egress)).toMatch(failed);
    expect(asked).toEqual([]);
  });

  it.for(oneOnFirstEngine)('lets a backend reach the networks of its list only', async () => {
    const reachable = [onIntranet];
    const blocked = [onInternet, onMetadata, ...ownService];
    const { id, reached } = await reachedFrom(['10.254.253.0/24', '169.254.0.0/16'], { reachable, blocked });
    expect(reached).toEqual(reachable);
    await platform.end(id);
  });

  it.for(oneOnFirstEngine)('lets no other user of the machine connect to a backend', async () => {
    const id = await platform.schedule({ imageDigest: await platform.images.add(polite) });
    const { address } = await platform.until(id, 'ready');
    const script = (ms: number) =>
      `fetch('http://${address?.host}:${address?.port}/', { signal: AbortSignal.timeout(${ms}) }).then(() => process.exit(0), () => process.exit(7))`;
    const asUser = (uid: number, ms: number) =>
      spawnSync(process.execPath, ['-e', script(ms)], { uid, cwd: '/' }).status;
    expect([asUser(0, 30_000), asUser(65_534, 2_000)]).toEqual([0, 7]);
    await platform.end(id);
  });

  it.for(oneOnFirstEngine)(
    'is required by a service that limits egress: without it, the backend does not start',
    async () => {
      await using without = await openWorkerFixture();
      const imageDigest = await without.platform.images.add(polite);
      const id = await without.platform.schedule({ imageDigest, egress: 'none' });
      const { history } = await without.platform.until(id, 'terminated');
      expect(JSON.stringify(history.at(-1))).toContain('limits egress, which needs a firewall');
    },
  );
});

/** The command that prints the answer of a web server. (`wget` of a static busybox does not look up addresses.) */
function get(target: string, seconds: number): string {
  return `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w ${seconds} ${target.replace(':', ' ')} | grep -v HTTP | grep .`;
}

/** Opens a DNS server at loopback. The tests of another engine may have the port for a while. */
async function bindDns(onQuery: (query: Buffer) => void): Promise<Socket | undefined> {
  const deadline = performance.now() + 120_000;
  do {
    const server = createSocket('udp4', onQuery);
    const isBound = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.bind(53, '127.0.0.1', () => resolve(true));
    });
    if (isBound) return server;
    server.close();
    await delay(100);
  } while (performance.now() < deadline);
  return undefined;
}

function gatewayOf({ engine }: TestPlatform): string {
  return engine.engine.network.subnet.replace(/\d+\/\d+$/, '1');
}

/** The rules that name the bridge of a platform. */
function rulesOf({ engine }: TestPlatform): string[] {
  const { bridge } = engine.engine.network;
  const saved = ['iptables-save', 'ip6tables-save'].map((program) => spawnSync(program, ['-t', 'mangle']).stdout);
  return saved
    .flatMap((output) => output.toString().split('\n'))
    .filter((line) => line.toUpperCase().includes(bridge.toUpperCase()));
}
