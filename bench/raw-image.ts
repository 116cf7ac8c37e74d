/** Pushes a small image over plain HTTP, without a Docker Engine. */
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { RegistryClient } from '../test/kit/platform/registry-client.ts';

/** The credentials of the platform's access token. */
export function authorizationOf({ account, token }: TestPlatform): string {
  return `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
}

/** Pushes a small image that cannot run, as `latest`. */
export async function pushEmptyImage(platform: TestPlatform, service: string): Promise<void> {
  const client = new RegistryClient(platform);
  await client.push(client.image(service, 'latest', [RegistryClient.layer(64)]));
}
