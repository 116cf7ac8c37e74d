// Takes about 7 s
/** The proxy in separate threads, in a platform without an engine. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { expect, test, vi } from 'vitest';
import { freePort } from '../../test/kit/machine/free-port.ts';
import { temporaryFolder } from '../../test/kit/machine/temporary-folder.ts';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { openLog, silentLog } from '../../core/log/log.ts';
import { openMetrics } from '../../core/metrics/metrics.ts';
import { openDatabase } from '../../core/store/sqlite/database.mjs';
import { CertificateFiles } from '../../core/tls/certificate-files.ts';
import { newPair } from '../../core/tls/testing/new-pair.ts';
import { loadConfig } from '../config/config.ts';
import { allRoles } from '../config/roles.ts';
import { openDrivers } from '../drivers.ts';
import { openPlatform } from '../platform.ts';
import type { Platform } from '../platform.ts';
import { addressOf } from '../process/listeners.ts';
import type { ThreadRequest } from './messages.ts';
import { startProxyThreads } from './proxy-threads.ts';

interface Opened {
  /** The folder of its data. */
  readonly folder: string;
  readonly platform: Platform;
  /** The threads of the proxy that were started, by name. */
  readonly threads: { readonly name: string; readonly worker: Worker }[];
  readonly lines: string[];
}

async function open(settings: Readonly<Record<string, string>>, owned: AsyncDisposableStack): Promise<Opened> {
  const folder = owned.use(await temporaryFolder());
  const config = loadConfig({
    BERTH_DATA_FOLDER: folder.path,
    DOCKER_HOST: `unix://${folder.path}/no-engine.sock`,
    BERTH_API_PORT: '0',
    BERTH_REGISTRY_PORT: '0',
    BERTH_PROXY_PORT: '0',
    BERTH_OPERATIONS_PORT: '0',
    ...settings,
  });
  const threads: Opened['threads'] = [];
  const onWorker = (worker: Worker) => void threads.push({ name: worker.threadName ?? '', worker });
  process.on('worker', onWorker);
  owned.defer(() => void process.off('worker', onWorker));
  const lines: string[] = [];
  const log = openLog('fatal' as 'error', { write: (line) => void lines.push(line) });
  const platform = owned.use(await openPlatform({ config, log, roles: allRoles }));
  return { folder: folder.path, platform, threads, lines };
}

/** The check of the proxy in `/readyz`. */
async function proxyCheck({ urls }: Platform): Promise<string | undefined> {
  const answer = await fetch(`${urls.operations}/readyz`);
  return ((await answer.json()) as { checks: Record<string, string> }).checks['proxy'];
}

/** The answer of the proxy to a token that does not exist. */
async function statusOfProxy({ urls }: Platform, headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const answer = await fetch(`${urls.proxy}/${'x'.repeat(43)}/`, { headers: { connection: 'close', ...headers } });
  return answer.status;
}

test('a blocked main thread does not delay the proxy', async () => {
  await using owned = new AsyncDisposableStack();
  const { platform } = await open({}, owned);
  expect(await statusOfProxy(platform)).toBe(410);
  const answers = new Int32Array(new SharedArrayBuffer(4));
  const client = new Worker(
    `const { parentPort, workerData: { url, answers } } = require('node:worker_threads');
     (async () => {
       parentPort.postMessage('ready');
       for (;;) {
         await (await fetch(url)).text();
         Atomics.add(answers, 0, 1);
         Atomics.notify(answers, 0);
       }
     })();`,
    { eval: true, execArgv: [], workerData: { url: `${platform.urls.proxy}/${'x'.repeat(43)}/`, answers } },
  );
  await once(client, 'message');
  // Blocks the main thread until the client has received enough answers.
  const enough = Atomics.load(answers, 0) + 10;
  let count = 0;
  do count = Atomics.load(answers, 0);
  while (count < enough && Atomics.wait(answers, 0, count, 30_000) !== 'timed-out');
  await client.terminate();
  expect(count).toBeGreaterThanOrEqual(enough);
});

test('a blocked disk does not delay the proxy, and heads may have 64 KiB', async () => {
  await using owned = new AsyncDisposableStack();
  const { platform, folder } = await open({}, owned);
  // While another connection holds the write lock, the store waits as for a slow disk.
  const blocker = openDatabase(join(folder, 'store', 'berth.db'));
  owned.defer(() => blocker.close());
  blocker.exec('BEGIN IMMEDIATE');
  const kibibytes = async (count: number) => await statusOfProxy(platform, { cookie: 'x'.repeat(count * 1024) });
  expect([await kibibytes(1), await kibibytes(15), await kibibytes(17), await kibibytes(62)]).toEqual(
    Array.from({ length: 4 }, () => 410),
  );
  expect(await kibibytes(66)).toBe(431);
  blocker.exec('ROLLBACK');
});

test('a thread that has ended is restarted on its port, and the process is not ready until then', async () => {
  await using owned = new AsyncDisposableStack();
  // A port of the kernel's choice could be taken by another program before the restart.
  const { platform, threads, lines } = await open({ BERTH_PROXY_PORT: String(await freePort()) }, owned);
  expect(await proxyCheck(platform)).toBe('ok');
  const before = threads.find(({ name }) => name === 'proxy-1');
  await before?.worker.terminate();
  // Concurrently, because the thread restarts after a tenth of a second.
  const asked = statusOfProxy(platform).catch((error: Error) => error.message);
  expect([await proxyCheck(platform), await asked]).toEqual([
    expect.stringMatching(/^A thread of the proxy has ended and is restarting: /),
    'fetch failed',
  ]);
  await expect.poll(() => proxyCheck(platform)).toBe('ok');
  expect(await statusOfProxy(platform)).toBe(410);
  expect(threads.filter(({ name }) => name === 'proxy-1')).toHaveLength(2);
  expect(lines.join('')).toContain('A thread of the proxy has ended, restarting it');
});

test('a closed thread is sent no new certificates', async () => {
  await using owned = new AsyncDisposableStack();
  const folder = owned.use(await temporaryFolder());
  const files = { certificateFile: join(folder.path, 'certificate.pem'), keyFile: join(folder.path, 'key.pem') };
  const renew = async () => {
    const { certificate, key } = await newPair(['berth.example']);
    await Promise.all([writeFile(files.certificateFile, certificate), writeFile(files.keyFile, key)]);
  };
  await renew();
  const lines: string[] = [];
  const log = openLog('warn', { write: (line) => void lines.push(line) });
  const metrics = openMetrics();
  const config = loadConfig({ BERTH_DATA_FOLDER: join(folder.path, 'data'), BERTH_PROXY_PORT: '0' });
  const deps = await openDrivers({ config, log, metrics, roles: new Set(['proxy']) }, owned);
  const certificates = owned.use(await CertificateFiles.open([files], deps));
  const address = addressOf(config, 'host', 'proxyPort');
  const options = { roles: ['proxy'], apiUrl: 'http://berth.example', address, count: 1, certificates } as const;
  const threads = await startProxyThreads(deps, options);
  await threads[Symbol.asyncDispose]();
  await renew();
  await certificates.reload();
  await setImmediate();
  expect(lines).toEqual([]);
});

test('a thread that finishes its requests is not terminated while its store is silent', async () => {
  await using owned = new AsyncDisposableStack();
  const folder = owned.use(await temporaryFolder());
  const config = loadConfig({ BERTH_DATA_FOLDER: folder.path, BERTH_PROXY_PORT: '0' });
  const log = silentLog();
  const deps = await openDrivers({ config, log, metrics: openMetrics(), roles: new Set(['proxy']) }, owned);
  const clock = new ManualClock();
  const started = once(process, 'worker') as Promise<[Worker]>;
  const address = addressOf(config, 'host', 'proxyPort');
  const options = { roles: ['proxy'], apiUrl: 'http://berth.example', address, count: 1 } as const;
  const threads = await startProxyThreads({ ...deps, clock }, options);
  const [worker] = await started;
  const terminated = vi.spyOn(worker, 'terminate');
  const post = worker.postMessage.bind(worker);
  let close: ThreadRequest | undefined;
  // Requests of clients delay the first answer, and the store delays the second.
  vi.spyOn(worker, 'postMessage').mockImplementation((request: ThreadRequest) => {
    if (request.kind === 'close') close = request;
    else if (request.kind !== 'ping') post(request);
  });
  const closed = threads[Symbol.asyncDispose]();
  await vi.waitUntil(() => close, { timeout: 30_000 });
  const answered = once(worker, 'message');
  await clock.advance(5_000);
  await answered;
  await clock.advance(5_000);
  expect(terminated).not.toHaveBeenCalled();
  post(close);
  await closed;
});

test('the metrics of all threads are added up, and metrics of the process are counted once', async () => {
  await using owned = new AsyncDisposableStack();
  const { platform } = await open({ BERTH_PROXY_THREADS: '2' }, owned);
  const connections = 32;
  for (let i = 0; i < connections; i += 1) expect(await statusOfProxy(platform)).toBe(410);
  const text = await (await fetch(`${platform.urls.operations}/metrics`)).text();
  const value = (line: string) =>
    Number(
      text
        .split('\n')
        .find((each) => each.startsWith(`${line} `))
        ?.split(' ')[1],
    );
  expect(value('berth_proxy_requests_total{code_class="4xx"}')).toBe(connections);
  expect(value('berth_thread_heap_bytes{thread="proxy-1"}')).toBeGreaterThan(1e6);
  expect(value('berth_thread_heap_bytes{thread="proxy-2"}')).toBeGreaterThan(1e6);
  expect(value('process_start_time_seconds')).toBeGreaterThan(Date.now() / 1000 - 3_600);
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  expect(new Set(names).size).toBe(names.length);
});

test.each(['1', '2'])(
  'with %s threads, the error for a port in use names the port and the process that listens on it',
  async (threads) => {
    await using owned = new AsyncDisposableStack();
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    owned.defer(() => void holder.close());
    const port = String((holder.address() as AddressInfo).port);
    await expect(open({ BERTH_PROXY_PORT: port, BERTH_PROXY_THREADS: threads }, owned)).rejects.toThrow(
      `BERTH_PROXY_PORT: port ${port} of 127.0.0.1 is in use by process ${process.pid} (`,
    );
  },
);

test('a platform refuses the port of another platform, although both share their ports between threads', async () => {
  await using owned = new AsyncDisposableStack();
  const { platform } = await open({ BERTH_PROXY_THREADS: '2' }, owned);
  const { port } = new URL(platform.urls.proxy);
  await expect(open({ BERTH_PROXY_PORT: port, BERTH_PROXY_THREADS: '2' }, owned)).rejects.toThrow('is in use by');
});
