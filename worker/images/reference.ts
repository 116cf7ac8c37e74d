import type { Backend } from '../../model/backend.ts';
import type { Image } from '../../model/image.ts';
import { serviceId } from '../../model/service.ts';

/** Where the engine finds a backend's image. */
export function imageReference(registryHost: string, { account, service, imageDigest }: Backend): string {
  return referenceTo(registryHost, { repository: serviceId(account, service), digest: imageDigest });
}

/** Where the engine finds an image. */
export function referenceTo(
  registryHost: string,
  { repository, digest }: Pick<Image, 'repository' | 'digest'>,
): string {
  return `${registryHost}/${repository}@${digest}`;
}
