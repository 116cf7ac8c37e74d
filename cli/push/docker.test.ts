import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pushImage } from './docker.ts';

/** A `docker` that records its configuration. */
const recorder = `#!/bin/sh
ls "$DOCKER_CONFIG" > "$HOME/files"
cat "$DOCKER_CONFIG/config.json" > "$HOME/config"
echo "$DOCKER_CERT_PATH" > "$HOME/certificates"
`;

const login = { account: 'home', token: 'home.secret' };

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'berth-push-'));
  mkdirSync(join(home, '.docker/contexts'), { recursive: true });
  writeFileSync(join(home, 'docker'), recorder);
  chmodSync(join(home, 'docker'), 0o700);
});
afterEach(() => rmSync(home, { recursive: true }));

async function recordedPush(more: Readonly<Record<string, string>> = {}) {
  const env = { HOME: home, PATH: `${home}:/usr/bin:/bin`, ...more };
  const { signal } = new AbortController();
  await pushImage('registry.example:5000/home/draw:v1', login, { env, cwd: home, signal });
  const [files = '', config = '', certificates = ''] = ['files', 'config', 'certificates'].map((name) =>
    readFileSync(join(home, name), 'utf8').trim(),
  );
  return { files: files.split('\n'), config: JSON.parse(config) as unknown, certificates };
}

const auths = { 'registry.example:5000': { auth: Buffer.from('home:home.secret').toString('base64') } };

test('a push has a separate log-in, and the current context of the user', async () => {
  writeFileSync(join(home, '.docker/config.json'), JSON.stringify({ auths: { other: {} }, currentContext: 'remote' }));
  const { files, config } = await recordedPush();
  expect([files, config]).toEqual([['config.json', 'contexts'], { auths, currentContext: 'remote' }]);
});

test('a push reaches the engine that DOCKER_CONTEXT or DOCKER_TLS_VERIFY select', async () => {
  expect(await recordedPush()).toEqual({ files: ['config.json', 'contexts'], config: { auths }, certificates: '' });
  const secured = await recordedPush({ DOCKER_TLS_VERIFY: '1' });
  expect(secured.certificates).toBe(join(home, '.docker'));
  const elsewhere = await recordedPush({ DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: '/certificates' });
  expect(elsewhere.certificates).toBe('/certificates');
  rmSync(join(home, '.docker'), { recursive: true });
  expect((await recordedPush()).files).toEqual(['config.json']);
});
