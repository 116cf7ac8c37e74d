/** A client of an engine's API, for tests that do not test the docker command: each docker command takes 20 ms of CPU time. */
import Docker from 'dockerode';
import type { TestEngine } from './docker-engine.ts';

/** Connects to an engine. */
export function engineClient({ host }: Pick<TestEngine, 'host'>): Docker {
  if (host.startsWith('unix://')) return new Docker({ socketPath: host.slice('unix://'.length) });
  const { hostname, port } = new URL(host);
  return new Docker({ host: hostname, port });
}

/** The IDs of a backend's running containers, in the short form of the docker command. */
export async function containersOf(engine: Pick<TestEngine, 'host'>, backend: string): Promise<string[]> {
  const found = await engineClient(engine).listContainers({ filters: { label: [`berth.backend=${backend}`] } });
  return found.map(({ Id }) => Id.slice(0, 12));
}

/** Removes the containers of a node, which outlive their platform, and their network. */
export async function removeFromEngine(engine: TestEngine | undefined, node: string): Promise<void> {
  if (!engine) return;
  const docker = engineClient(engine);
  const ignore = () => {};
  const filters = { label: [`berth.node=${node}`] };
  const containers = await docker.listContainers({ all: true, filters }).catch(() => []);
  const remove = async (id: string) => await docker.getContainer(id).remove({ force: true, v: true }).catch(ignore);
  await Promise.all(containers.map(async ({ Id }) => await remove(Id)));
  await docker.getNetwork(`berth-${node}`).remove().catch(ignore);
}

/** Pulls an image by its full name, with the access token of an account. */
export async function pullImage(
  engine: Pick<TestEngine, 'host'>,
  name: string,
  { account, token, registry }: { readonly account: string; readonly token: string; readonly registry: string },
): Promise<void> {
  const docker = engineClient(engine);
  const authconfig = { username: account, password: token, serveraddress: registry };
  const progress = await docker.pull(name, { authconfig });
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(progress, (error: Error | null) => (error ? reject(error) : resolve()));
  });
}
