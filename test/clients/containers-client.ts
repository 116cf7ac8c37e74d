/**
 * Shared by podman, buildah and skopeo, which use the same library: their error messages, and the commands of podman and buildah,
 * with image stores separate from the machine's.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand, tryCommand } from '../../setup/command.ts';
import type { CommandOptions } from '../../setup/command.ts';
import type { ClientOptions, Login, Place, PushOptions, Words } from './client.ts';
import type { LayoutTag } from './layout.ts';

export const containersWords: Words = {
  wrongPassword: /invalid username\/password/,
  noLogin: /unauthorized|authentication required/i,
  noRight: /denied/i,
  absent: /manifest unknown|name unknown/,
  untrusted: /certificate signed by unknown authority/,
};

/**
 * Opens podman or buildah, which push and pull with the same commands.
 *
 * @param inspect - the arguments that print the digest of an image, without its name
 */
export async function openContainersClient(
  program: string,
  { place, layouts }: ClientOptions,
  { trust, inspect }: { readonly trust: boolean; readonly inspect: readonly string[] },
) {
  const { folder, host } = place;
  const stores: string[] = [];
  const openStore = async (driver?: 'overlay') => {
    const store = join(folder, `store-${stores.length}`);
    stores.push(store);
    return { env: { ...(await makeStore(store, driver)), REGISTRY_AUTH_FILE: join(folder, 'auth.json') } };
  };
  const own = await openStore();
  const security = trustFlags(place, trust);
  const run = async (args: string[], options: CommandOptions = {}) =>
    await runCommand(program, args, { ...own, ...options });
  return {
    run,
    security,
    openStore,
    login: async ({ user, password }: Login) =>
      void (await run(['login', ...security, '-u', user, '--password-stdin', host], { input: password })),
    logout: async () => void (await run(['logout', host])),
    push: async (tag: LayoutTag, target: string, options: PushOptions = {}) => {
      const image = await run(['pull', '--quiet', `oci:${layouts.folder}/${tag}:${tag}`]);
      await run(['push', '--quiet', ...security, image.trim(), `docker://${target}`], options);
    },
    pull: async (source: string) => {
      const store = await openStore();
      await run(['pull', '--quiet', ...security, source], store);
      return (await run([...inspect, source], store)).trim();
    },
    [Symbol.asyncDispose]: async () => {
      for (const store of stores) await removeStore(store);
    },
  };
}

/**
 * Creates an empty store in a folder, and returns the environment that makes podman and buildah use it. `vfs`, which works on
 * every file system, copies layers; only `overlay` accepts layers in parts.
 */
async function makeStore(folder: string, driver: 'vfs' | 'overlay' = 'vfs'): Promise<Readonly<Record<string, string>>> {
  await mkdir(folder, { recursive: true });
  const storage = [
    '[storage]',
    `driver = "${driver}"`,
    `graphroot = "${folder}/images"`,
    `runroot = "${folder}/run"`,
    ...(driver === 'overlay' ? ['[storage.options]', 'pull_options = {enable_partial_images = "true"}'] : []),
  ];
  // Needs neither a journal nor systemd.
  const engine = ['[engine]', 'events_logger = "none"', 'cgroup_manager = "cgroupfs"', `tmp_dir = "${folder}/tmp"`];
  await writeFile(join(folder, 'storage.conf'), `${storage.join('\n')}\n`);
  await writeFile(join(folder, 'containers.conf'), `${engine.join('\n')}\n`);
  return {
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    CONTAINERS_CONF: join(folder, 'containers.conf'),
    TMPDIR: folder,
  };
}

/** Removes a store, and the mounts that its driver left there. */
async function removeStore(folder: string): Promise<void> {
  for (const driver of ['overlay', 'vfs']) await tryCommand('umount', ['--lazy', join(folder, 'images', driver)]);
  await rm(folder, { recursive: true, force: true });
}

/** The flags that make podman and buildah trust the registry. */
function trustFlags({ security }: Place, trust: boolean): string[] {
  if (security === 'plain') return ['--tls-verify=false'];
  return trust ? ['--cert-dir', security.authorityFolder] : [];
}
