/** What an engine says of itself that tells where its images are. */
export interface ImageFoldersInfo {
  readonly DockerRootDir?: string;
  readonly DriverStatus?: readonly (readonly string[])[] | null;
}

/** Where containerd keeps its content, unless it is configured otherwise: the engine does not know. */
const containerdFolder = '/var/lib/containerd';

/**
 * The folders of the engine's machine that grow when it pulls an image. With containerd's store of images, which new
 * installations have since Docker Engine 29, that is the folder of containerd; one that the engine started itself keeps it in the
 * engine's own. See https://docs.docker.com/engine/storage/containerd/
 */
export function imageFoldersIn({ DockerRootDir, DriverStatus }: ImageFoldersInfo): string[] {
  if (!DockerRootDir) return [];
  const isContainerds = DriverStatus?.some(([, value]) => value?.startsWith('io.containerd.snapshotter.'));
  return isContainerds ? [DockerRootDir, containerdFolder] : [DockerRootDir];
}
