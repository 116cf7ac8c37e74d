/** Computes the progress of a pull from the engine's lines about each layer. */
import type { PullProgress } from '../../contract/messages.ts';

interface Layer {
  readonly downloadedBytes: number;
  /** 0 until its download begins: the engine does not report the size before. */
  readonly sizeBytes: number;
  readonly isDone: boolean;
}

/** The fields about a layer in one line of an engine's answer to `POST /images/create`. */
export interface PullLine {
  /** The first characters of a layer's digest; absent on lines about the image. */
  readonly id?: string;
  readonly status?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

const waiting: Layer = { downloadedBytes: 0, sizeBytes: 0, isDone: false };

/** The statuses of layers (`distribution/xfer` and `distribution/pull_v2.go` of Docker Engine), and what each means. */
const steps: Readonly<Record<string, (layer: Layer, detail: NonNullable<PullLine['progressDetail']>) => Layer>> = {
  'Pulling fs layer': () => waiting,
  Waiting: (layer) => layer,
  Downloading: (layer, { current = layer.downloadedBytes, total = layer.sizeBytes }) => ({
    downloadedBytes: current,
    sizeBytes: Math.max(current, total),
    isDone: false,
  }),
  'Verifying Checksum': downloaded,
  'Download complete': downloaded,
  Extracting: downloaded,
  'Pull complete': (layer) => ({ ...downloaded(layer), isDone: true }),
  'Already exists': (layer) => ({ ...downloaded(layer), isDone: true }),
};

/** Adds up the layers of one pull. */
export class PullProgressSum {
  readonly #layers = new Map<string, Layer>();

  /** Adds one line. Returns the progress after it, or `undefined` if the line is not about a layer. */
  add({ id, status = '', progressDetail = {} }: PullLine): PullProgress | undefined {
    const step = Object.hasOwn(steps, status) ? steps[status] : undefined;
    if (id === undefined || !step) return undefined;
    this.#layers.set(id, step(this.#layers.get(id) ?? waiting, progressDetail));
    const layers = [...this.#layers.values()];
    return {
      layers: layers.length,
      layersDone: layers.filter(({ isDone }) => isDone).length,
      downloadedBytes: sum(layers.map(({ downloadedBytes }) => downloadedBytes)),
      totalBytes: sum(layers.map(({ sizeBytes }) => sizeBytes)),
    };
  }
}

function downloaded(layer: Layer): Layer {
  return { ...layer, downloadedBytes: layer.sizeBytes };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
