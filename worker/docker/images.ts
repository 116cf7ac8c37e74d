import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { LRUCache } from 'lru-cache';
import type { PullProgress } from '../../contract/messages.ts';
import { linesOf } from '../../core/text/lines.ts';
import { EngineError, callEngine, callEngineUnless, isContainerdAway } from './engine-error.ts';
import { PullProgressSum } from './pull-progress.ts';
import type { PullLine } from './pull-progress.ts';
import { imageConfigOf } from './image-config.ts';
import type { ImageConfig } from './image-config.ts';

export interface PullOptions {
  /** A bearer token for the registry. */
  readonly token: string;
  readonly signal: AbortSignal;
  /** Called with each step that the engine reports. */
  readonly onProgress?: (progress: PullProgress) => void;
}

/** The part of the engine's description that shows where it stores images. */
export interface ImageFoldersInfo {
  readonly DockerRootDir?: string;
  readonly DriverStatus?: readonly (readonly string[])[] | null;
}

/** The default folder of containerd: the engine does not report the configured one. */
const containerdFolder = '/var/lib/containerd';

/**
 * The folders of the engine's machine that grow when it pulls an image. With containerd's image store, the default of new
 * installations since Docker Engine 29, that is containerd's folder, or the engine's own if the engine started containerd. See
 * https://docs.docker.com/engine/storage/containerd/
 */
export function imageFoldersIn({ DockerRootDir, DriverStatus }: ImageFoldersInfo): string[] {
  if (!DockerRootDir) return [];
  const isContainerds = DriverStatus?.some(([, value]) => value?.startsWith('io.containerd.snapshotter.'));
  return isContainerds ? [DockerRootDir, containerdFolder] : [DockerRootDir];
}

/** Configurations are small, and a node rarely starts more images than this. */
const maxConfigs = 500;

/** The images of an engine, each by its reference with digest: `<registry>/<repository>@<digest>`. */
export class Images {
  readonly #docker: Docker;
  /** A reference with a digest never means another image. */
  readonly #configs = new LRUCache<string, ImageConfig>({ max: maxConfigs });
  readonly #streaming: Docker;

  /** @param streaming - the same engine, without a time limit between two answers */
  constructor(docker: Docker, streaming: Docker) {
    this.#docker = docker;
    this.#streaming = streaming;
  }

  async has(reference: string): Promise<boolean> {
    return (await callEngineUnless('no-image', () => this.#docker.getImage(reference).inspect())) !== undefined;
  }

  /** The configuration of an image. Throws `no-image`, unless it was read before. */
  async configOf(reference: string): Promise<ImageConfig> {
    const known = this.#configs.get(reference);
    if (known) return known;
    const config = imageConfigOf(await callEngine(() => this.#docker.getImage(reference).inspect()));
    this.#configs.set(reference, config);
    return config;
  }

  /**
   * Pulls an image. Throws `refused` with the message of the registry or the engine, and the signal's reason when it aborts: the
   * engine then stops pulling.
   */
  async pull(reference: string, { token, signal, onProgress }: PullOptions): Promise<void> {
    signal.throwIfAborted();
    try {
      const stream = (await callEngine(() =>
        this.#streaming.pull(reference, { authconfig: { registrytoken: token }, abortSignal: signal }),
      )) as Readable;
      await callEngine(() => readToEnd(addAbortSignal(signal, stream), onProgress));
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }
}

interface EngineLine extends PullLine {
  readonly error?: unknown;
}

/** Reads the progress of a pull. The engine answers 200 before it begins, and reports a failure as a line of the body. */
async function readToEnd(stream: Readable, onProgress?: (progress: PullProgress) => void): Promise<void> {
  const sum = new PullProgressSum();
  for await (const text of linesOf(stream)) {
    const line = parseLine(text);
    if (typeof line.error === 'string') {
      throw new EngineError(isContainerdAway(line.error) ? 'unavailable' : 'refused', line.error);
    }
    const progress = sum.add(line);
    if (progress) onProgress?.(progress);
  }
}

function parseLine(text: string): EngineLine {
  try {
    return JSON.parse(text) as EngineLine;
  } catch {
    return {};
  }
}
