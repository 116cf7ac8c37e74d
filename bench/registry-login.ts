import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { repositoryOf } from './raw-image.ts';
import type { Repository } from './registry-load.ts';

/**
 * The repository that is measured, with the bearer token that a client gets before its first request. That is good for some
 * minutes, so each measurement has its own.
 *
 * @param registry - which one of the platform's, as host and port
 */
export async function loggedIn(platform: TestPlatform, registry: string): Promise<Repository> {
  const name = `${platform.account}/bench`;
  const { authorization } = repositoryOf(platform, 'bench');
  const url = `http://${registry}/token?service=berth-registry&scope=repository:${name}:pull,push`;
  const answer = await fetch(url, { headers: { authorization } });
  const { token } = (await answer.json()) as { token: string };
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port), name, authorization: `Bearer ${token}` };
}
