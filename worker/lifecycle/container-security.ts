/** The rights of a backend's container, by its security profile. */
import type { SecurityProfile } from '../../contract/security-profile.ts';
import type { ContainerSpec } from '../docker/containers.ts';
import type { ImageConfig } from '../docker/image-config.ts';

/** `nobody` and `nogroup` of most systems. They need not exist in the image. */
const nobody = '65534:65534';

/** Folders for temporary files. They are in memory, and count as memory. */
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

/** The numeric user and group, if they are known without the files of the image. */
function ownerOf(user: string): { uid: number; gid: number } | undefined {
  const [, uid, gid = '0'] = /^(\d+)(?::(\d+))?$/.exec(user) ?? [];
  return uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}

/** Whether `USER` of an image is root. Other names of user 0 in the image are not detected. */
function isRoot(user: string): boolean {
  const [name = ''] = user.split(':', 1);
  return /^(?:root|0*)$/.test(name);
}
