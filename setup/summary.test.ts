import { PassThrough } from 'node:stream';
import type { WriteStream } from 'node:tty';
import { expect, test } from 'vitest';
import { summaryForPeople, summaryForPrograms } from './summary.ts';
import type { ShownPlatform } from './summary.ts';
import { openTerminal } from './terminal.ts';

const url = 'http://the-label.localhost:7102/';
const plainUrl = 'http://127.0.0.1:7102/the-connection-token/';

const platform: ShownPlatform = {
  urls: {
    api: 'http://127.0.0.1:7100',
    registry: '127.0.0.1:7101',
    proxy: 'http://127.0.0.1:7102',
    operations: 'http://127.0.0.1:7103',
  },
  account: { name: 'home', tokenFile: '/srv/.berth/token', newToken: 'the-access-token' },
  setupCode: { file: '/srv/.berth/setup-code', code: 'the-set-up-code' },
  worker: { running: true },
};

function summaryOn(isTTY: boolean, hasMounts = true): string {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 120 }) as unknown as WriteStream;
  return summaryForPeople({ platform, hasMounts, sample: { url, plainUrl } }, openTerminal(stream));
}

test('a terminal shows the URL of the session, and the access token once', () => {
  expect(summaryOn(true)).toContain(url);
  expect(summaryOn(true)).toContain(plainUrl);
  expect(summaryOn(true)).toContain('in /srv/.berth/token, shown this once: the-access-token');
  expect(summaryOn(true)).toContain('http://127.0.0.1:7100/setup with the code the-set-up-code');
});

test('a redirected log contains no secrets, but the commands that print them', () => {
  const text = summaryOn(false);
  expect(text).not.toMatch(/the-label|the-connection-token|the-access-token|the-set-up-code/);
  expect(text).toContain('in /srv/.berth/token\n');
  expect(text).toContain('/setup with the code in /srv/.berth/setup-code');
  expect(text).toContain('"key":"welcome"');
  expect(text).toContain('"mount":true');
  expect(summaryOn(false, false)).not.toContain('mount');
  expect(text).toContain('Bearer $(cat /srv/.berth/token)');
});

test('programs get the URL for every client, and also the URL for browsers', () => {
  const { sample_url, sample_host_url } = JSON.parse(
    summaryForPrograms({ platform, hasMounts: true, sample: { url, plainUrl } }),
  );
  expect([sample_url, sample_host_url]).toEqual([plainUrl, url]);
  const same = JSON.parse(summaryForPrograms({ platform, hasMounts: true, sample: { url: plainUrl, plainUrl } }));
  expect(same).toMatchObject({ sample_url: plainUrl });
  expect(same).not.toHaveProperty('sample_host_url');
});
