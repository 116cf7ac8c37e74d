/** Streams of the client against the real API, with a node whose responses a test writes. Connections break in the client's `fetch`. */
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { becomeServing, openTestApi } from '../api/testing/test-api.ts';
import type { TestApi } from '../api/testing/test-api.ts';
import { openTestNode } from '../api/testing/test-node.ts';
import { becomeTerminated } from '../model/backend.ts';
import type { Backend } from '../model/backend.ts';
import { skipWaits } from '../test/kit/machine/skipped-waits.ts';
import { BerthClient, BerthError } from './index.ts';

let parts: AsyncDisposableStack;
let api: TestApi;
/** The responses of the node, by the path of the request. */
let answer: (path: string, response: ServerResponse) => void;

beforeEach(async () => {
  parts = new AsyncDisposableStack();
  api = parts.use(await openTestApi());
  parts.use(await openTestNode(api, (request, response) => answer(request.url ?? '', response)));
});
afterEach(() => parts.disposeAsync());

const ended = (backend: Backend) => becomeTerminated(backend, { kind: null, reason: null, exitCode: 0 }, new Date());
const position = (index: number) => `1767225600.000000000-${String(index).padStart(8, '0')}`;
const record = (index: number) => `${JSON.stringify({ at: position(index), line: `line ${index}` })}\n`;

/** How a stream ends early: its connection breaks, or the server ends it, as when the server stops. */
type Ending = 'breaks' | 'ends';

/** A client whose first streams are cut after some events. Records the `Last-Event-ID` of each stream. */
function clientWithCuts(...cuts: { after: number; how: Ending }[]) {
  const opened: (string | null)[] = [];
  const cutting = async (input: Parameters<typeof fetch>[0], init: RequestInit = {}) => {
    const response = await fetch(input, { ...init });
    const headers = new Headers(init.headers);
    if (headers.get('accept') !== 'text/event-stream') return response;
    opened.push(headers.get('last-event-id'));
    const next = cuts[opened.length - 1];
    return next && response.body ? new Response(response.body.pipeThrough(cut(next)), response) : response;
  };
  // The server asks for a wait of two seconds before a reconnect, which would take long in a test.
  const impatient = async (input: Parameters<typeof fetch>[0], init?: RequestInit) => {
    const response = await cutting(input, init);
    if (response.headers.get('content-type') !== 'text/event-stream' || !response.body) return response;
    return new Response(response.body.pipeThrough(withRetry(1)), response);
  };
  return { opened, berth: new BerthClient({ url: api.base, token: api.token, retryDelayMs: 1, fetch: impatient }) };
}

function cut({ after, how }: { after: number; how: Ending }): TransformStream<Uint8Array, Uint8Array> {
  let text = '';
  return new TransformStream({
    transform: (chunk, controller) => {
      text += new TextDecoder().decode(chunk);
      const events = text.split('\n\n');
      const isEnough = events.filter((event) => event.includes('data:')).length >= after && text.endsWith('\n\n');
      if (!isEnough) return;
      const first = events.filter((event) => event.includes('data:')).slice(0, after);
      controller.enqueue(new TextEncoder().encode(first.map((event) => `${event}\n\n`).join('')));
      if (how === 'ends') controller.terminate();
      else controller.error(new TypeError('terminated'));
    },
  });
}

function withRetry(ms: number): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform: (chunk, controller) => {
      const text = new TextDecoder().decode(chunk).replace('retry: 2000', `retry: ${ms}`);
      controller.enqueue(new TextEncoder().encode(text));
    },
  });
}

async function started(): Promise<string> {
  const { backend_id: backend } = await new BerthClient({ url: api.base, token: api.token }).connect('acme/draw');
  await api.change(backend, becomeServing);
  return backend;
}

async function statusesOf(berth: BerthClient, backend: string): Promise<string[]> {
  return (await Array.fromAsync(berth.statuses(backend))).map(({ status }) => status);
}

describe('statuses', () => {
  test('end with the last one, and need no access token', async () => {
    const backend = await started();
    await api.change(backend, ended);
    const berth = new BerthClient({ url: api.base });
    expect(await statusesOf(berth, backend)).toEqual(['scheduled', 'waiting', 'ready', 'terminated']);
  });

  test.each(['breaks', 'ends'] as const)('a stream that %s early is continued after its last event', async (how) => {
    const backend = await started();
    await api.change(backend, ended);
    const { berth, opened } = clientWithCuts({ after: 1, how }, { after: 2, how });
    expect(await statusesOf(berth, backend)).toEqual(['scheduled', 'waiting', 'ready', 'terminated']);
    expect(opened).toEqual([null, '0', '2']);
  });

  test('a consumer that leaves closes the connection', async () => {
    const backend = await started();
    const signals: (AbortSignal | null | undefined)[] = [];
    let isClosed = false;
    const berth = new BerthClient({
      url: api.base,
      fetch: async (input, init) => {
        signals.push(init?.signal);
        const { body, ...response } = await fetch(input, init);
        const watched = body?.pipeThrough(new TransformStream({ cancel: () => void (isClosed = true) }));
        return new Response(watched, { ...response, headers: { 'content-type': 'text/event-stream' } });
      },
    });
    for await (const { status } of berth.statuses(backend)) if (status === 'ready') break;
    expect([signals.length, isClosed]).toEqual([1, true]);
  });

  test('a signal ends a stream with its reason', async () => {
    const backend = await started();
    const controller = new AbortController();
    const reason = new Error('The page was closed');
    const seen: string[] = [];
    const following = async () => {
      for await (const { status } of new BerthClient({ url: api.base }).statuses(backend, controller)) {
        seen.push(status);
        if (status === 'ready') setTimeout(() => controller.abort(reason));
      }
    };
    await expect(following()).rejects.toBe(reason);
    expect(seen).toEqual(['scheduled', 'waiting', 'ready']);
  });

  test('of a backend that does not exist are an error without retries', async () => {
    const { berth, opened } = clientWithCuts();
    const error = await statusesOf(berth, 'none').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(BerthError);
    expect([(error as BerthError).code, opened.length]).toEqual(['BackendNotFound', 1]);
  });
});

describe('logs', () => {
  /** A node whose log has three lines. */
  const nodeWithLines = () => {
    answer = (path, response) => {
      const after = /after=(\S+)/.exec(path)?.[1] ?? '';
      response.end(
        [0, 1, 2]
          .filter((index) => position(index) > after)
          .map(record)
          .join(''),
      );
    };
  };

  test.each(['breaks', 'ends'] as const)(
    'a stream that %s early is continued after its last line, even if the backend has ended',
    async (how) => {
      const backend = await started();
      await api.change(backend, ended);
      nodeWithLines();
      const { berth, opened } = clientWithCuts({ after: 1, how });
      const lines = (await Array.fromAsync(berth.logs(backend))).map(({ line }) => line);
      expect(lines).toEqual(['line 0', 'line 1', 'line 2']);
      expect(opened.slice(0, 2)).toEqual([null, position(0)]);
    },
  );

  test('a stream that the server ends while the backend runs is opened again', async () => {
    const backend = await started();
    nodeWithLines();
    const { berth, opened } = clientWithCuts({ after: 3, how: 'ends' });
    const seen = [];
    for await (const { line } of berth.logs(backend)) {
      seen.push(line);
      if (seen.length === 3) await api.change(backend, ended);
    }
    expect(seen).toEqual(['line 0', 'line 1', 'line 2']);
    expect(new Set(opened)).toEqual(new Set([null, position(2)]));
  });

  test('begin after the line given as `after`', async () => {
    const backend = await started();
    await api.change(backend, ended);
    nodeWithLines();
    const { berth } = clientWithCuts();
    expect(await Array.fromAsync(berth.logs(backend, { after: position(1) }))).toEqual([
      { id: position(2), line: 'line 2' },
    ]);
  });

  test('are retried after Retry-After while the node is busy', async () => {
    const backend = await started();
    await api.change(backend, ended);
    let requests = 0;
    answer = (_path, response) => {
      requests += 1;
      if (requests === 1) response.writeHead(429).end();
      else response.end(requests === 2 ? record(0) : '');
    };
    const { berth } = clientWithCuts();
    const waits = skipWaits(2_000);
    expect((await Array.fromAsync(berth.logs(backend))).map(({ line }) => line)).toEqual(['line 0']);
    expect(waits).toHaveLength(1);
  });

  test('are not retried after a Retry-After of an hour', async () => {
    const waits = skipWaits(3_600_000);
    const headers = { 'retry-after': '3600' };
    const berth = new BerthClient({ url: api.base, fetch: async () => new Response(null, { status: 503, headers }) });
    await expect(Array.fromAsync(berth.logs('any'))).rejects.toMatchObject({ status: 503, retryAfterMs: 3_600_000 });
    expect(waits).toEqual([]);
  });
});

test('metrics arrive until the backend has ended', async () => {
  const backend = await started();
  const metrics = { backend_id: backend, cpu_used: 1, sys_cpu: 2, mem_used: 3, mem_limit: 5, mem_available: 2 };
  answer = (_path, response) => void response.end(`${JSON.stringify(metrics)}\n`);
  const { berth } = clientWithCuts();
  const seen = [];
  for await (const each of berth.metrics(backend)) {
    seen.push(each);
    await api.change(backend, ended);
  }
  expect(seen).toEqual([metrics]);
});

test('a stream that continues after the last status of a backend that has ended is complete', async () => {
  const { berth, opened } = clientWithCuts();
  const id = await started();
  await api.change(id, ended);
  const after = String((await Array.fromAsync(berth.statuses(id))).length - 1);
  expect(await Array.fromAsync(berth.statuses(id, { after }))).toEqual([]);
  expect(opened).toEqual([null, after]);
});
