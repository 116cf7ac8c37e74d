import { createServer as createTcpServer } from 'node:net';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../core/clock/testing/manual-clock.ts';
import { systemClock } from '../../core/clock/system-clock.ts';
import { httpCheck, untilChecked } from './checks.ts';

const opened: (() => void)[] = [];
afterEach(() => {
  for (const close of opened.splice(0)) close();
});

/** A server that answers each connection with these bytes, and the data that it received. */
async function answering(answer: string | ((socket: Socket) => void)): Promise<{ port: number; sent: string[] }> {
  const sent: string[] = [];
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      sent.push(data.toString());
      if (typeof answer === 'string') socket.write(answer);
      else answer(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.push(() => server.close());
  return { port: (server.address() as { port: number }).port, sent };
}

const never = new AbortController().signal;

describe('the HTTP check', () => {
  test.each([
    ['200 OK', undefined],
    ['204 No Content', undefined],
    ['302 Found', undefined],
    ['400 Bad Request', 'answers GET /up?a=b with 400, expected 200 to 399'],
    ['503 Service Unavailable', 'answers GET /up?a=b with 503, expected 200 to 399'],
  ])('an answer of %s: %s', async (status, problem) => {
    const { port, sent } = await answering(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);
    const check = httpCheck({ host: '127.0.0.1', port, path: '/up?a=b' }, systemClock);
    expect(await check(never)).toBe(problem);
    expect(sent.join('')).toMatch(/^GET \/up\?a=b HTTP\/1\.1\r\nhost: localhost\r\n/i);
  });

  test('the check does not wait for the end of a body', async () => {
    const { port } = await answering('HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx');
    expect(await httpCheck({ host: '127.0.0.1', port, path: '/' }, systemClock)(never)).toBeUndefined();
  });

  test.each([
    ['nothing at all', (socket: Socket) => void socket.resetAndDestroy()],
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n'],
    [
      'headers without an end',
      (socket: Socket) => void socket.write(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(50_000)}`),
    ],
  ])('an answer that is %s is a problem', async (_what, answer) => {
    const { port } = await answering(answer);
    expect(await httpCheck({ host: '127.0.0.1', port, path: '/' }, systemClock)(never)).toBe(
      'does not answer GET / as HTTP',
    );
  });

  test('a missing answer is a problem, and the check ends with its signal', async () => {
    const asked = Promise.withResolvers<void>();
    const { port } = await answering(() => asked.resolve());
    const clock = new ManualClock();
    const controller = new AbortController();
    const check = httpCheck({ host: '127.0.0.1', port, path: '/' }, clock);
    const aborted = check(controller.signal);
    controller.abort(new Error('stopped'));
    await expect(aborted).rejects.toThrow('stopped');
    const silent = check(never);
    await asked.promise;
    await clock.advance(5_000);
    expect(await silent).toBe('does not answer GET / within 5 seconds');
  });
});

test('a check is repeated until it finds no problem, and a lasting problem is reported once', async () => {
  const reported: string[] = [];
  const clock = new ManualClock(new Date(0));
  const checking = untilChecked(
    async () => (clock.now().getTime() < 1_700 ? 'is not there yet' : undefined),
    { clock, onProblem: (problem) => reported.push(problem) },
    never,
  );
  await clock.advance(999);
  expect(reported).toEqual([]);
  await clock.advance(10_000);
  await checking;
  expect(reported).toEqual(['is not there yet']);
});

test('a check that throws is repeated, and ends with its signal', async () => {
  const controller = new AbortController();
  let times = 0;
  const checking = untilChecked(
    async () => {
      times += 1;
      if (times === 3) controller.abort(new Error('stopped'));
      throw new Error('The engine is away');
    },
    { clock: systemClock, onProblem: () => {} },
    controller.signal,
  );
  await expect(checking).rejects.toThrow('stopped');
  expect(times).toBe(3);
});
