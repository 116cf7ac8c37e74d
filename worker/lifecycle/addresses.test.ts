// Takes about 15 s
import { expect, it } from 'vitest';
import { formatAddress, parseAddress } from '../docker/subnets.ts';
import { describeWorker, leftBehind, openWorkerFixture } from '../testing/fixture.ts';
import { polite } from '../testing/test-platform.ts';

await describeWorker('addresses of backends', (fixture) => {
  it('assigns no address twice in a row', async () => {
    const imageDigest = await fixture.platform.images.add(polite);
    const hosts = new Set<string | undefined>();
    for (let round = 0; round < 3; round += 1) {
      const id = await fixture.platform.schedule({ imageDigest });
      hosts.add((await fixture.platform.until(id, 'ready')).address?.host);
      await fixture.platform.end(id);
    }
    expect(hosts.size).toBe(3);
  });

  it('assigns each of many concurrent backends its own address', async () => {
    const imageDigest = await fixture.platform.images.add(polite);
    const ids = await Promise.all(Array.from({ length: 8 }, () => fixture.platform.schedule({ imageDigest })));
    const all = await Promise.all(ids.map((id) => fixture.platform.until(id, 'ready')));
    expect(new Set(all.map(({ address }) => address?.host)).size).toBe(8);
    await Promise.all(ids.map((id) => fixture.platform.end(id)));
  });

  it('creates its network again after it was removed', async () => {
    await using other = await openWorkerFixture();
    const { engine, docker } = other.platform.engine;
    await docker.getNetwork(engine.network.name).remove();
    const id = await other.platform.schedule({ imageDigest: await other.platform.images.add(polite) });
    expect((await other.platform.until(id, 'ready')).status).toBe('ready');
  });

  it('uses another address if a container has the assigned one', async () => {
    await using other = await openWorkerFixture();
    const { engine, docker } = other.platform.engine;
    const [next, squatted, after] = addressesAhead(engine.network);
    const imageDigest = await other.platform.images.add(polite);
    const first = await other.platform.schedule({ imageDigest });
    expect((await other.platform.until(first, 'ready')).address?.host).toBe(next);
    // Takes the next address without the worker.
    const squatter = await docker.createContainer({
      Image: (await other.platform.containerOf(first).inspect()).Image,
      Env: ['PORT=8080'],
      Labels: { 'berth.node': other.platform.node },
      HostConfig: { NetworkMode: engine.network.name, Init: true },
      NetworkingConfig: { EndpointsConfig: { [engine.network.name]: { IPAMConfig: { IPv4Address: squatted } } } },
    });
    await squatter.start();
    const second = await other.platform.schedule({ imageDigest });
    const host = (await other.platform.until(second, 'ready')).address?.host;
    expect(host).toBe(after);
  });

  it('leaves nothing behind', async () => {
    expect(await leftBehind(fixture.platform)).toEqual([]);
  });
});

/** The next three addresses of a network, which is first advanced so that its end does not come before them. */
function addressesAhead({ addresses }: { readonly addresses: { assign(): string } }): [string, string, string] {
  for (;;) {
    const taken = parseAddress(addresses.assign()) ?? 0;
    if (taken % 256 <= 250) return [formatAddress(taken + 1), formatAddress(taken + 2), formatAddress(taken + 3)];
  }
}
