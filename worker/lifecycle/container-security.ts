/** What the container of a backend may do, by its security profile. */
import type { SecurityProfile } from '../../contract/security-profile.ts';
import type { ContainerSpec } from '../docker/containers.ts';
import type { ImageConfig } from '../docker/image-config.ts';

/** `nobody` and `nogroup` of most systems. The image need not know them. */
const nobody = '65534:65534';

/** Where programs write that keep no data. They are in memory, and count as such. */
const writablePaths = ['/tmp', '/run', '/var/tmp'];

type Security = Pick<ContainerSpec, 'capabilities' | 'user' | 'readOnlyRoot' | 'memoryFolders'>;

/** @param defaults - the capabilities of the profile `default` on this node */
export function containerSecurity(
  profile: SecurityProfile,
  image: Pick<ImageConfig, 'user' | 'volumes'>,
  defaults: readonly string[],
): Security {
  if (profile === 'default') return { capabilities: defaults };
  if (profile === 'none') return { capabilities: [] };
  const user = isRoot(image.user) ? nobody : image.user;
  const owner = ownerOf(user);
  return {
    capabilities: [],
    readOnlyRoot: true,
    // A volume can be written, too, and has the files of the image.
    memoryFolders: { paths: writablePaths.filter((path) => !image.volumes.includes(path)), ...(owner && { owner }) },
    user,
  };
}

/** The numbers of a user, if it is known without the files of the image. */
function ownerOf(user: string): { uid: number; gid: number } | undefined {
  const [, uid, gid = '0'] = /^(\d+)(?::(\d+))?$/.exec(user) ?? [];
  return uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}

/** Whether `USER` of an image is root. A name that the image gives to user 0 besides is not seen here. */
function isRoot(user: string): boolean {
  const [name = ''] = user.split(':', 1);
  return /^(?:root|0*)$/.test(name);
}
