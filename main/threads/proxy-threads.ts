/** Starts the threads of the proxy, restarts a thread that crashes, and closes them. */
import type { CertificateFiles } from '../../core/tls/certificate-files.ts';
import type { CertificatePair } from '../../core/tls/certificate-pair.ts';
import { openListener } from '../process/listener.ts';
import type { ComponentDeps } from '../drivers.ts';
import type { ThreadData, ThreadMetric } from './messages.ts';
import { RunningThread } from './running-thread.ts';

/** A proxy in separate threads. */
export interface ProxyThreads extends AsyncDisposable {
  /** The shared address of all threads. */
  readonly hostPort: string;
  /** Throws an error with a message for the operator unless every thread serves. */
  ping(): Promise<void>;
  /** The metrics of each thread. A thread that does not answer is omitted. */
  metrics(): Promise<readonly (readonly ThreadMetric[])[]>;
}

interface ProxyThreadsOptions extends Pick<ThreadData, 'roles' | 'apiUrl' | 'address'> {
  readonly count: number;
  /** Absent if the proxy does not speak TLS. */
  readonly certificates?: CertificateFiles | undefined;
}

/** Starts the threads. Throws `ConfigError` with the setting to change if they cannot listen. */
export async function startProxyThreads(
  deps: ComponentDeps,
  { count, certificates, ...options }: ProxyThreadsOptions,
): Promise<ProxyThreads> {
  await using opening = new AsyncDisposableStack();
  const reusePort = count > 1;
  // With SO_REUSEPORT, other processes of this user can share the port, too. This check prevents sharing it with another platform.
  if (reusePort && options.address.port !== 0) await (await openListener(options.address))[Symbol.asyncDispose]();
  const threads: SupervisedThread[] = [];
  let { address } = options;
  for (let i = 1; i <= count; i += 1) {
    const thread = opening.use(
      new SupervisedThread(deps, { ...options, name: `proxy-${i}`, address, reusePort }, certificates),
    );
    address = { ...address, port: portOf(await thread.hostPort) };
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

/** The wait doubles with each crash, so that a thread that crashes at each start does not use a whole core. */
const restartAfterMs = 100;
const maxRestartAfterMs = 30_000;

type StartData = Omit<ThreadData, 'config' | 'logLevel' | 'share' | 'certificates'>;

/**
 * A thread that is restarted when it crashes, for example out of memory. Its connections are lost; the rest of the process and the
 * containers of all sessions keep running.
 */
class SupervisedThread implements AsyncDisposable {
  readonly #deps: ComponentDeps;
  readonly #closing = new AbortController();
  readonly #firstHostPort = Promise.withResolvers<string>();
  readonly #done: Promise<void>;
  readonly #certificates: CertificateFiles | undefined;
  readonly #renewals: Disposable | undefined;
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
    this.#renewals = certificates?.onChange((pairs) => this.#useCertificates(pairs));
  }

  /** Rejects if the first start fails. */
  get hostPort(): Promise<string> {
    return this.#firstHostPort.promise;
  }

  async ping(): Promise<void> {
    if (this.#problem) {
      throw new Error(`A thread of the proxy has ended and is restarting: ${this.#problem.message}`);
    }
    await this.#thread.ask('ping');
  }

  async metrics(): Promise<readonly ThreadMetric[]> {
    return this.#problem ? [] : await this.#thread.ask('metrics');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#renewals?.[Symbol.dispose]();
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
        // A restarted thread listens on the same port.
        this.#data = { ...this.#data, address: { ...this.#data.address, port: portOf(hostPort) } };
      },
      (error: unknown) => this.#firstHostPort.reject(error),
    );
    return thread;
  }

  /** Sends new certificates to the thread. A thread that is starting already has them. */
  #useCertificates(certificates: readonly CertificatePair[]): void {
    const { log } = this.#deps;
    this.#thread.hostPort
      .then(async () => await this.#thread.ask('certificates', { certificates }))
      .catch((error: unknown) =>
        log.warn({ err: error, thread: this.#data.name }, 'A thread could not load new certificates'),
      );
  }

  async #supervise(): Promise<void> {
    const { clock, log } = this.#deps;
    await this.#firstHostPort.promise.catch(() => this.#closing.abort());
    for (let waitMs = restartAfterMs; ; waitMs = Math.min(2 * waitMs, maxRestartAfterMs)) {
      const startedMs = clock.now().getTime();
      const error = await this.#thread.ended;
      if (this.#closing.signal.aborted) return;
      this.#problem = error;
      log.fatal({ err: error, thread: this.#data.name }, 'A thread of the proxy has ended, restarting it');
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
