import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { openLog } from './log.ts';

test('lines are JSON with their facts beside the message, and secrets are redacted', () => {
  const lines: string[] = [];
  const destination = new Writable({ write: (chunk, _encoding, done) => (lines.push(String(chunk)), done()) });
  const log = openLog('info', destination).child({ room: 'api' });
  log.debug('Not written');
  log.info({ backend: 'b1', token: 'hidden', headers: { authorization: 'hidden' } }, 'Backend connected');
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    level: 'info',
    time: expect.stringMatching(/Z$/),
    room: 'api',
    backend: 'b1',
    token: '[redacted]',
    headers: { authorization: '[redacted]' },
    msg: 'Backend connected',
  });
});
