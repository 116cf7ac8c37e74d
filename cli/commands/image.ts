/** `berth image`. */
import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Command } from '@commander-js/extra-typings';
import type { BerthClient, Image } from '../../client/index.ts';
import { positive } from '../arguments.ts';
import { collect } from '../collect.ts';
import { notFound } from '../errors.ts';
import { withExamples } from '../examples.ts';
import { loadArchive } from '../push/docker.ts';
import { Progress } from '../output/progress.ts';
import { table } from '../output/table.ts';
import { ago } from '../output/time-text.ts';
import { deleteImage } from '../registry.ts';
import type { Session } from '../session.ts';

export function imageCommand(session: Session) {
  return new Command('image')
    .summary('list, delete and download images')
    .description('Lists, deletes and downloads images.')
    .addCommand(imagesCommand(session).name('list').alias('ls'))
    .addCommand(removeCommand(session))
    .addCommand(pullCommand(session));
}

/** One push a day for a month. */
const defaultLimit = 30;

/** `image list`; existing tools call it `images`. */
export function imagesCommand(session: Session) {
  return new Command('images')
    .summary('list the images of a service, newest first')
    .description('Lists the images that were pushed for a service, newest first.')
    .argument('<service>', 'SERVICE or ACCOUNT/SERVICE')
    .option('--limit <count>', `how many (default: ${defaultLimit})`, positive)
    .action(async (name, { limit = defaultLimit }) => {
      const client = await session.client();
      const service = await session.service(name);
      const images = await collect(
        client.images(service, { signal: session.signal, pageSize: Math.min(limit, 1000) }),
        limit,
      );
      session.output.data(images, imagesTable(images));
    });
}

function imagesTable(images: readonly Image[]): string {
  return table(
    ['DIGEST', 'TAG', 'PUSHED', 'COMMIT'],
    images.map(({ digest, tag, upload_time, git_commit }) => [digest, tag, ago(upload_time), commitText(git_commit)]),
  );
}

function commitText(commit: Image['git_commit']): string {
  if (!commit) return '-';
  const [subject = ''] = (commit.message ?? '').split('\n');
  return [commit.hash?.slice(0, 8), commit.branch && `(${commit.branch})`, subject].filter(Boolean).join(' ');
}

function removeCommand(session: Session) {
  const command = new Command('rm')
    .alias('delete')
    .summary('delete an image')
    .description('Deletes an image of a service with all its tags. Garbage collection frees its space.')
    .argument('<service>', 'SERVICE or ACCOUNT/SERVICE')
    .argument('<image>', 'a tag or a digest')
    .option('-y, --yes', 'do not ask')
    .action(async (name, reference, { yes = false }) => {
      const service = await session.service(name);
      const client = await session.client();
      const { digest } = await findImage(session, client, { service, reference });
      await session.prompts.confirmDeletion({
        what: `This deletes the image ${digest} of ${service}.`,
        name: reference,
        yes,
      });
      await deleteImage(session, service, digest);
      session.output.done({ service, digest, deleted: true }, `Deleted ${digest} of ${service}`);
    });
  return withExamples(command, 'image rm draw v1', 'image rm draw sha256:4f5a… --yes');
}

function pullCommand(session: Session) {
  const command = new Command('pull')
    .summary('download an image')
    .description(
      'Downloads an image into Docker, or with --output into an archive that docker load, podman and skopeo read.',
    )
    .argument('<service>', 'SERVICE or ACCOUNT/SERVICE')
    .argument('[image]', 'a tag or a digest', 'latest')
    .option('-o, --output <file>', 'the archive to write; -: standard output')
    .action(async (name, reference, { output: file }) => {
      const service = await session.service(name);
      const client = await session.client();
      const { digest } = await findImage(session, client, { service, reference });
      const response = await client.downloadImage(service, digest, { signal: session.signal });
      await save(session, response, file);
      if (file !== '-') session.output.done({ service, digest, file: file ?? null }, `Downloaded ${digest}`);
    });
  return withExamples(command, 'image pull draw', 'image pull draw v2 --output draw.tar');
}

async function save(session: Session, response: Response, file: string | undefined): Promise<void> {
  const { io, signal } = session;
  const progress = new Progress(io, 'Downloading');
  progress.start(Number(response.headers.get('content-length')) || undefined);
  const bytes = progress.counter();
  const reading = pipeline(Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]), bytes, {
    signal,
  });
  // Awaited below. It may fail while the archive is written.
  reading.catch(() => {});
  try {
    if (file === undefined) await loadArchive(bytes, { env: io.env, cwd: io.cwd, signal });
    else if (file === '-') await pipeline(bytes, io.stdout, { signal, end: false });
    else await writeWhole(bytes, resolve(io.cwd, file), signal);
    await reading;
  } catch (error) {
    bytes.destroy();
    await reading.catch(() => {});
    progress.stop('The download failed');
    throw error;
  }
  progress.stop('Downloaded');
}

/** Writes a file that appears when it is complete: part of an archive looks like an archive. Until then, an older file stays. */
async function writeWhole(bytes: Readable, path: string, signal: AbortSignal): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found && !found.isFile()) {
    // A device or a pipe; for a folder, this rejects.
    await pipeline(bytes, createWriteStream(path), { signal });
    return;
  }
  const part = `${path}.${randomBytes(6).toString('hex')}.part`;
  try {
    await pipeline(bytes, createWriteStream(part, { flags: 'wx' }), { signal });
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

interface ImageReference {
  readonly service: string;
  readonly reference: string;
}

/** Finds the newest image with a tag, or the image with a digest. */
async function findImage(
  { signal }: Session,
  client: BerthClient,
  { service, reference }: ImageReference,
): Promise<Image> {
  for await (const image of client.images(service, { signal })) {
    if (image.digest === reference || image.tag === reference) return image;
  }
  const message = `The service ${service} has no image "${reference}"`;
  throw notFound('ImageNotFound', message, '"berth image list" shows its images');
}
