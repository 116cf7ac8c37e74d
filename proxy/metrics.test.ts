import { expect, test } from 'vitest';
import { ManualClock } from '../core/clock/testing/manual-clock.ts';
import { openLog } from '../core/log/log.ts';
import { backends } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { newToken } from './testing/token.ts';
import {
  exchangeBytes,
  openFixture,
  spawn,
  makeReady,
  spawnReady,
  startProgram,
  startRawProgram,
  until,
} from './testing/fixture.ts';

interface Line {
  msg: string;
  backend?: string;
  method?: string;
  status?: number;
  error?: string;
  sentBytes: number;
}

function openLines() {
  const lines: string[] = [];
  const log = openLog('debug', { write: (line: string) => void lines.push(line) });
  const ended = () => lines.map((line) => JSON.parse(line) as Line).filter(({ msg }) => msg === 'Request ended');
  return { lines, log, ended };
}

test('each request is logged in one line, without its token or path', async () => {
  const { lines, log, ended } = openLines();
  await using fixture = await openFixture({ log });
  await using program = await startProgram((_request, response) => void response.writeHead(201).end('x'.repeat(5000)));
  await using raw = await startRawProgram(
    (socket) => void socket.end('HTTP/1.1 101 Ok\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
  );
  const { token, backend } = await spawnReady(fixture, program);
  const upgradable = await spawnReady(fixture, raw);
  const unknown = newToken();
  await fetch(`${fixture.url}/${token}/private?private`, { method: 'PUT', body: 'private' });
  await fetch(`${fixture.url}/${unknown}/private`);
  await exchangeBytes(
    fixture.port,
    `GET /${upgradable.token}/private HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`,
  );
  await until(() => ended().length === 3);
  expect(ended()[0]).toMatchObject({ backend, method: 'PUT', status: 201 });
  expect(ended()[0]?.sentBytes).toBeGreaterThan(5000);
  expect(ended()[1]).toMatchObject({ method: 'GET', status: 410, error: 'gone' });
  expect(ended()[2]).toMatchObject({ backend: upgradable.backend, method: 'GET', status: 101 });
  expect(ended()[2]?.sentBytes).toBeGreaterThan(0);
  for (const secret of [token, unknown, upgradable.token, 'private']) expect(lines.join('')).not.toContain(secret);
});

test('metrics: requests by class, open connections, hold times', async () => {
  const clock = new ManualClock(new Date());
  await using fixture = await openFixture({ clock });
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await using program = await startProgram((_request, response) => {
    void released.then(() => response.end());
  });
  const { token, backend } = await spawn(fixture);
  const answers = [fetch(`${fixture.url}/${token}/`), fetch(`${fixture.url}/${token}/`)];
  await until(async () => {
    await clock.advance(1_000);
    return fixture.reports.some((open) => open[backend] === 2);
  });
  expect(await fixture.metrics.metrics()).toMatch(/^berth_proxy_open_connections 2$/m);
  await makeReady(fixture, backend, program);
  release();
  await Promise.all(answers);
  await fetch(`${fixture.url}/unknown`);
  await until(async () => /open_connections 0$/m.test(await fixture.metrics.metrics()));
  const text = await fixture.metrics.metrics();
  expect(text).toMatch(/^berth_proxy_requests_total\{code_class="2xx"\} 2$/m);
  expect(text).toMatch(/^berth_proxy_requests_total\{code_class="4xx"\} 1$/m);
  expect(text).toMatch(/^berth_proxy_hold_seconds_count 2$/m);
  await fixture.proxy[Symbol.asyncDispose]();
  expect(await fixture.metrics.metrics()).not.toContain('berth_proxy');
});

test('latency and bytes by service, on both paths', async () => {
  await using fixture = await openFixture();
  await using program = await startProgram((_request, response) => void response.end('x'.repeat(1_000)));
  const { token, backend } = await spawnReady(fixture, program);
  const service = serviceOf(await fixture.store.get(backends, backend));
  await fetch(`${fixture.url}/${token}/plain`);
  await fetch(`${fixture.url}/${token}/general`, { method: 'REPORT' });
  await until(async () => /open_connections 0$/m.test(await fixture.metrics.metrics()));
  const text = await fixture.metrics.metrics();
  expect(text).toContain(`berth_proxy_request_seconds_count{service="${service}",code_class="2xx"} 2`);
  const sent = new RegExp(`berth_proxy_sent_bytes_total\\{service="${service}"\\} (\\d+)`).exec(text)?.[1];
  expect(Number(sent)).toBeGreaterThan(2_000);
});

test('a sample of requests can be logged, with their trace IDs', async () => {
  const { log, ended } = openLines();
  await using fixture = await openFixture({ log, accessLogPercent: 25 });
  await using program = await startProgram((_request, response) => void response.end());
  const { token } = await spawnReady(fixture, program);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  for (let i = 0; i < 8; i += 1) {
    await fetch(`${fixture.url}/${token}/`, { method: i < 4 ? 'GET' : 'REPORT', headers: { traceparent } });
  }
  await fetch(`${fixture.url}/${newToken()}/`);
  await until(() => ended().some(({ error }) => error === 'gone'));
  const trace = '0af7651916cd43dd8448eb211c80319c';
  expect(ended()).toMatchObject([{ method: 'GET', trace }, { method: 'REPORT', trace }, { status: 410 }]);
});

function serviceOf(backend: Backend | undefined): string {
  return `${backend?.account}/${backend?.service}`;
}
