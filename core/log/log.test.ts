import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { canMount, SmallDisk, whyNoDisk } from '../../test/kit/machine/small-disk.ts';
import { openLog } from './log.ts';

test('lines are JSON with their fields beside the message, and secrets are redacted', () => {
  const lines: string[] = [];
  const destination = new Writable({ write: (chunk, _encoding, done) => (lines.push(String(chunk)), done()) });
  const log = openLog('info', destination).child({ component: 'api' });
  log.debug('Not written');
  log.info({ backend: 'b1', token: 'hidden', headers: { authorization: 'hidden' } }, 'Backend connected');
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    level: 'info',
    time: expect.stringMatching(/Z$/),
    component: 'api',
    backend: 'b1',
    token: '[redacted]',
    headers: { authorization: '[redacted]' },
    msg: 'Backend connected',
  });
});

/** For each line of its input, logs a line and then prints it. */
const logger = `
  import { createInterface } from 'node:readline';
  import { openLog } from ${JSON.stringify(join(import.meta.dirname, 'log.ts'))};
  const log = openLog('info');
  for await (const line of createInterface(process.stdin)) {
    log.info({ filling: 'x'.repeat(1000) }, line);
    console.log(line);
  }
`;

async function startLogger(stderr: number | 'pipe') {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', logger], { stdio: ['pipe', 'pipe', stderr] });
  const answers = createInterface(child.stdout as Readable)[Symbol.asyncIterator]();
  return {
    child,
    log: async (line: string) => {
      child.stdin?.write(`${line}\n`);
      return (await answers.next()).value;
    },
    [Symbol.asyncDispose]: async () => {
      child.stdin?.end();
      await once(child, 'close');
      expect(child.exitCode).toBe(0);
    },
  };
}

test('a log whose reader has closed does not end its process', async () => {
  await using logger = await startLogger('pipe');
  await logger.log('one');
  logger.child.stderr?.destroy();
  for (const line of ['two', 'three', 'four']) expect(await logger.log(line)).toBe(line);
});

test.runIf(canMount)(
  `a log on a full disk does not end its process, and continues when there is space${whyNoDisk}`,
  async () => {
    await using disk = await SmallDisk.mount(1);
    const path = join(disk.path, 'log');
    await using file = await open(path, 'a');
    {
      await using logger = await startLogger(file.fd);
      await logger.log('before');
      await disk.fillUpTo(0);
      for (let i = 0; i < 20; i += 1) expect(await logger.log('full')).toBe('full');
      await disk.heal();
      await logger.log('after');
    }
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
      'before',
      ...Array.from({ length: 20 }, () => 'full'),
      'after',
    ]);
  },
);
