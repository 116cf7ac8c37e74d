/** Reads certificates and their keys from files, and reloads them when the files change: renewals replace the files. */
import { readFile } from 'node:fs/promises';
import type { Gauge } from 'prom-client';
import { PeriodicTask } from '../async/periodic-task.ts';
import type { Clock } from '../clock/clock.ts';
import { systemCode } from '../files/system-code.ts';
import type { Log } from '../log/log.ts';
import { MetricGroup } from '../metrics/metric-group.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { CertificateError, checkPair } from './certificate-pair.ts';
import type { CertificatePair, CertificateTerms } from './certificate-pair.ts';

/** The paths of a pair. */
export interface PairFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

interface Deps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/**
 * How often the files are read: they are small. File system events miss some replacements: certbot and Kubernetes replace links in
 * other folders, and network file systems send no events.
 */
export const reloadEveryMs = 10_000;

const dayMs = 24 * 3600 * 1000;

/** ACME clients renew a certificate when a third of its time is left. */
const warnAtShareLeft = 1 / 4;

const warnAtMostMs = 14 * dayMs;

/** A pair in use, and the state of its files. */
interface Watched {
  readonly files: PairFiles;
  pair: CertificatePair;
  terms: CertificateTerms;
  /** Why the files cannot be used now. */
  problem: string | undefined;
  isReported: boolean;
}

/** Pairs of files, read again until disposed. */
export class CertificateFiles implements AsyncDisposable {
  readonly #deps: Deps;
  readonly #watched: readonly Watched[];
  readonly #metrics: MetricGroup;
  readonly #reloads: PeriodicTask;
  readonly #actions = new Set<(pairs: readonly CertificatePair[]) => void>();
  #warnedMs = -Infinity;

  private constructor(watched: readonly Watched[], deps: Deps) {
    this.#deps = deps;
    this.#metrics = new MetricGroup(deps.metrics);
    this.#watched = watched;
    this.#reloads = new PeriodicTask(deps.clock, reloadEveryMs, async () => await this.#reloadOrLog());
    this.#registerMetrics();
    for (const each of watched) this.#logPair(each, 'Using a TLS certificate');
    this.#warnOfExpiry();
  }

  /** Reads the files. Throws `CertificateError` if a pair cannot be used. */
  static async open(files: readonly PairFiles[], deps: Deps): Promise<CertificateFiles> {
    const watched = await Promise.all(
      files.map(async (each) => ({ files: each, ...(await readPair(each)), problem: undefined, isReported: false })),
    );
    return new CertificateFiles(watched, deps);
  }

  /** The pairs in use. */
  get pairs(): readonly CertificatePair[] {
    return this.#watched.map(({ pair }) => pair);
  }

  /** Calls `action` with all pairs, whenever one has been replaced, until the result is disposed. */
  onChange(action: (pairs: readonly CertificatePair[]) => void): Disposable {
    this.#actions.add(action);
    return { [Symbol.dispose]: () => void this.#actions.delete(action) };
  }

  /** Reads the files now. If a pair cannot be used, the previous one stays in use. */
  async reload(): Promise<void> {
    await this.#reloads.run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reloads[Symbol.asyncDispose]();
    this.#metrics[Symbol.dispose]();
  }

  async #reloadOrLog(): Promise<void> {
    await this.#reload().catch((error: unknown) => {
      this.#deps.log.error({ err: error }, 'Cannot reload the files of TLS certificates');
    });
  }

  async #reload(): Promise<void> {
    let isChanged = false;
    for (const each of this.#watched) if (await this.#reloadPair(each)) isChanged = true;
    if (isChanged) for (const action of this.#actions) action(this.pairs);
    this.#warnOfExpiry();
  }

  /** Returns whether the pair was replaced. */
  async #reloadPair(watched: Watched): Promise<boolean> {
    try {
      const { pair, terms } = await readPair(watched.files);
      watched.problem = undefined;
      watched.isReported = false;
      if (pair.certificate === watched.pair.certificate && pair.key === watched.pair.key) return false;
      Object.assign(watched, { pair, terms });
      this.#logPair(watched, 'Using a new TLS certificate for new connections');
      return true;
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      this.#report(watched, error);
      return false;
    }
  }

  /** Reports a problem when it is found for the second time: the two files are not replaced at the same moment. */
  #report(watched: Watched, error: CertificateError): void {
    const isSecond = watched.problem === error.message;
    watched.problem = error.message;
    if (!isSecond || watched.isReported) return;
    watched.isReported = true;
    this.#deps.log.error(
      { ...watched.files, err: error },
      'A new TLS certificate cannot be used, the previous one stays in use',
    );
  }

  #logPair({ files, terms }: Watched, message: string): void {
    this.#deps.log.info({ ...files, names: terms.names, notAfter: terms.notAfter }, message);
  }

  /** Warns at most once a day. */
  #warnOfExpiry(): void {
    const { clock, log } = this.#deps;
    const nowMs = clock.now().getTime();
    if (nowMs - this.#warnedMs < dayMs) return;
    this.#warnedMs = nowMs;
    for (const { files, terms } of this.#watched) {
      const leftMs = terms.notAfter.getTime() - nowMs;
      const fields = { ...files, names: terms.names, notAfter: terms.notAfter };
      if (leftMs <= 0) log.error(fields, 'A TLS certificate has expired');
      else if (leftMs < warnBeforeMs(terms)) log.warn(fields, 'A TLS certificate expires soon, and was not renewed');
    }
  }

  #registerMetrics(): void {
    this.#gauge(
      'berth_tls_certificate_expiry_timestamp_seconds',
      'When a TLS certificate expires, by its file',
      ({ terms }) => terms.notAfter.getTime() / 1000,
    );
    this.#gauge(
      'berth_tls_certificate_files_ok',
      'Whether the files of a TLS certificate can be used (1), or the last ones stay in use (0)',
      ({ problem }) => (problem === undefined ? 1 : 0),
    );
  }

  #gauge(name: string, help: string, valueOf: (each: Watched) => number): void {
    const collect = (gauge: Gauge<'file'>) => {
      for (const each of this.#watched) gauge.set({ file: each.files.certificateFile }, valueOf(each));
    };
    this.#metrics.gauge(name, help, collect, 'file');
  }
}

function warnBeforeMs({ notBefore, notAfter }: CertificateTerms): number {
  return Math.min(warnAtMostMs, (notAfter.getTime() - notBefore.getTime()) * warnAtShareLeft);
}

async function readPair({
  certificateFile,
  keyFile,
}: PairFiles): Promise<{ readonly pair: CertificatePair; readonly terms: CertificateTerms }> {
  const [certificate, key] = await Promise.all([readText(certificateFile), readText(keyFile)]);
  const pair = { certificate, key };
  try {
    return { pair, terms: checkPair(pair) };
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    throw new CertificateError(`${error.message} (${certificateFile}, ${keyFile})`, { cause: error });
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new CertificateError(`${file} cannot be read (${systemCode(error) ?? 'unknown error'})`, { cause: error });
  }
}
