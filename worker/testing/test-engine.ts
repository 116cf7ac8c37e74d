/** The engine for tests. Everything that a test leaves on it is removed. */
import { createHash } from 'node:crypto';
import type Docker from 'dockerode';
import { silentLog } from '../../core/log/log.ts';
import { openEngine } from '../docker/engine.ts';
import type { Engine, EngineOptions } from '../docker/engine.ts';
import { nodeLabel } from '../docker/labels.ts';
import type { EngineKind } from '../../test/kit/engines/docker-engine.ts';
import { engineClient } from '../../test/kit/engines/engine-client.ts';
import { testEngines } from '../../test/kit/engines/engines.ts';
import { possibleOpenFiles } from '../../test/kit/machine/open-files.ts';

/** The socket of the engine for tests. */
export const testEngineHost = process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock';

/** The options of a test for its engine. */
export interface TestEngineOptions extends Partial<Pick<EngineOptions, 'silenceMs' | 'openFilesLimit'>> {
  /** An engine of the test itself, which it also inspects. */
  readonly own?: string;
}

/**
 * Cases that do not depend on the engine's release, for `it.each` and `it.for`: they exist on the first engine only. A container costs
 * 0.2 s of CPU time.
 */
export function onFirstEngine<Case>(cases: readonly Case[]): readonly Case[] {
  const [first] = testEngines();
  return first === undefined || first.host === testEngineHost ? cases : [];
}

/** The same for a single test: `it.for(oneOnFirstEngine)('is ready when its port opens', async () => …)`. */
export const oneOnFirstEngine = onFirstEngine(['here']);

/** The kind of the engine on which this file runs. */
export function testEngineKind(): EngineKind {
  return testEngines().find(({ host }) => host === testEngineHost)?.kind ?? 'stable';
}

/** Why tests cannot use an engine here, or `undefined` if they can. */
export async function whyNoEngine(): Promise<string | undefined> {
  try {
    await engineClient({ host: testEngineHost }).ping();
    return undefined;
  } catch (error) {
    return `no Docker Engine answers at ${testEngineHost} (${(error as Error).message})`;
  }
}

export interface TestEngine extends AsyncDisposable {
  readonly engine: Engine;
  /** For tests that inspect or break parts that the worker's interface does not offer. */
  readonly docker: Docker;
  removeContainers(): Promise<void>;
  /** Removes these images, as far as they exist. */
  removeImages(references: readonly string[]): Promise<void>;
}

/** Any function will do: in tests no client guesses IDs. */
export function nameSuffix(backend: string): string {
  return createHash('sha256').update(backend).digest('base64url');
}

/**
 * Opens the engine for a node of its own. Disposing removes that node's containers and network.
 *
 * @param host - another socket of the same engine
 */
export async function openTestEngine(
  node: string,
  host?: string,
  { own = testEngineHost, ...options }: TestEngineOptions = {},
): Promise<TestEngine> {
  const docker = engineClient({ host: own });
  const settings = { openFilesLimit: possibleOpenFiles(), ...options };
  const engine = await openEngine({ ...settings, host: host ?? own, node, nameSuffix, log: silentLog() });
  return {
    engine,
    docker,
    removeContainers: () => removeContainers(docker, node),
    removeImages: (references) => removeImages(docker, references),
    [Symbol.asyncDispose]: async () => {
      await removeContainers(docker, node);
      await ignoreMissing(docker.getNetwork(engine.network.name).remove());
      await engine[Symbol.asyncDispose]();
    },
  };
}

async function removeContainers(docker: Docker, node: string): Promise<void> {
  const filters = { label: [`${nodeLabel}=${node}`] };
  for (const { Id } of await docker.listContainers({ all: true, filters })) {
    await ignoreMissing(docker.getContainer(Id).remove({ force: true, v: true }));
  }
}

async function removeImages(docker: Docker, references: readonly string[]): Promise<void> {
  for (const reference of references) await ignoreMissing(docker.getImage(reference).remove({ force: true }));
}

async function ignoreMissing(removal: Promise<unknown>): Promise<void> {
  await removal.catch((error: { statusCode?: number }) => {
    if (error.statusCode !== 404 && error.statusCode !== 409) throw error as unknown;
  });
}
