/** The threads of the proxy: starts them, starts one again that has crashed, and closes them. */
import type { CertificateFiles } from '../../core/tls/certificate-files.ts';
import type { CertificatePair } from '../../core/tls/certificate-pair.ts';
import { openListener } from '../process/listener.ts';
import type { ComponentDeps } from '../drivers.ts';
import type { ThreadData, ThreadMetric } from './messages.ts';
import { RunningThread } from './running-thread.ts';

/** The proxy of this process, in threads of its own. */
export interface ProxyThreads extends AsyncDisposable {
  /** Where all of them listen. */
  readonly hostPort: string;
  /** Throws an error with a message for the operator unless every thread serves. */
  ping(): Promise<void>;
  /** What each thread measures. A thread that does not answer is left out. */
  metrics(): Promise<readonly (readonly ThreadMetric[])[]>;
}

interface ProxyThreadsOptions extends Pick<ThreadData, 'roles' | 'apiUrl' | 'place'> {
  readonly count: number;
  /** If the proxy speaks TLS. */
  readonly certificates?: CertificateFiles | undefined;
}

/** Starts the threads. Throws `ConfigError` with the setting to change if they cannot listen. */
export async function startProxyThreads(
  deps: ComponentDeps,
  { count, certificates, ...options }: ProxyThreadsOptions,
): Promise<ProxyThreads> {
  await using opening = new AsyncDisposableStack();
  const reusePort = count > 1;
  // Ports that are shared are shared with other processes of this user, too: with another platform, by mistake.
  if (reusePort && options.place.port !== 0) await (await openListener(options.place))[Symbol.asyncDispose]();
  const threads: SupervisedThread[] = [];
  let { place } = options;
  for (let i = 1; i <= count; i += 1) {
    const thread = opening.use(
      new SupervisedThread(deps, { ...options, name: `proxy-${i}`, place, reusePort }, certificates),
    );
    place = { ...place, port: portOf(await thread.hostPort) };
    threads.push(thread);
  }
  const [first] = threads;
  if (!first) throw new Error('A proxy needs a thread');
  const hostPort = await first.hostPort;
  const opened = opening.move();
  return {
    hostPort,
    ping: async () => void (await Promise.all(threads.map(async (thread) => await thread.ping()))),
    metrics: async () => {
      const answers = await Promise.allSettled(threads.map(async (thread) => await thread.metrics()));
      return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(threads.map(async (thread) => await thread[Symbol.asyncDispose]()));
      await opened.disposeAsync();
    },
  };
}

/** A thread that crashes at each start must not take the whole processor: the wait doubles with each crash. */
const restartAfterMs = 100;
const maxRestartAfterMs = 30_000;

type StartData = Omit<ThreadData, 'config' | 'logLevel' | 'share' | 'certificates'>;

/**
 * A thread that is started again when it crashes: out of memory, for example. The connections through it are lost, and everything
 * else of the process lives on, the containers of all sessions among it.
 */
class SupervisedThread implements AsyncDisposable {
  readonly #deps: ComponentDeps;
  readonly #closing = new AbortController();
  readonly #firstHostPort = Promise.withResolvers<string>();
  readonly #done: Promise<void>;
  readonly #certificates: CertificateFiles | undefined;
  #data: StartData;
  #thread: RunningThread;
  /** Why the thread does not serve, since its last crash. */
  #problem: Error | undefined;

  constructor(deps: ComponentDeps, data: StartData, certificates: CertificateFiles | undefined) {
    this.#deps = deps;
    this.#data = data;
    this.#certificates = certificates;
    this.#firstHostPort.promise.catch(() => {});
    this.#thread = this.#start();
    this.#done = this.#supervise();
    certificates?.onChange((pairs) => this.#useCertificates(pairs));
  }

  /** Rejects if the first start fails. */
  get hostPort(): Promise<string> {
    return this.#firstHostPort.promise;
  }

  async ping(): Promise<void> {
    if (this.#problem) {
      throw new Error(`A thread of the proxy has ended and starts again: ${this.#problem.message}`);
    }
    await this.#thread.ask('ping');
  }

  async metrics(): Promise<readonly ThreadMetric[]> {
    return this.#problem ? [] : await this.#thread.ask('metrics');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#thread[Symbol.asyncDispose]();
    await this.#done;
  }

  #start(): RunningThread {
    const { config, log, clock } = this.#deps;
    const share = this.#deps.shareDrivers();
    const certificates = this.#certificates?.pairs;
    const thread = new RunningThread({ ...this.#data, config, logLevel: log.level, share, certificates }, clock);
    thread.hostPort.then(
      (hostPort) => {
        this.#problem = undefined;
        this.#firstHostPort.resolve(hostPort);
        // A thread that is started again listens where clients expect it.
        this.#data = { ...this.#data, place: { ...this.#data.place, port: portOf(hostPort) } };
      },
      (error: unknown) => this.#firstHostPort.reject(error),
    );
    return thread;
  }

  /** A thread that starts meanwhile has been given them. */
  #useCertificates(certificates: readonly CertificatePair[]): void {
    const { log } = this.#deps;
    this.#thread.hostPort
      .then(async () => await this.#thread.ask('certificates', { certificates }))
      .catch((error: unknown) => log.warn({ err: error, thread: this.#data.name }, 'A thread has no new certificates'));
  }

  async #supervise(): Promise<void> {
    const { clock, log } = this.#deps;
    await this.#firstHostPort.promise.catch(() => this.#closing.abort());
    for (let waitMs = restartAfterMs; ; waitMs = Math.min(2 * waitMs, maxRestartAfterMs)) {
      const startedMs = clock.now().getTime();
      const error = await this.#thread.ended;
      if (this.#closing.signal.aborted) return;
      this.#problem = error;
      log.fatal({ err: error, thread: this.#data.name }, 'A thread of the proxy has ended, it is started again');
      if (clock.now().getTime() - startedMs > maxRestartAfterMs) waitMs = restartAfterMs;
      await clock.sleep(waitMs, this.#closing.signal).catch(() => {});
      if (this.#closing.signal.aborted) return;
      this.#thread = this.#start();
    }
  }
}

function portOf(hostPort: string): number {
  return Number(/:(\d+)$/.exec(hostPort)?.[1]);
}
