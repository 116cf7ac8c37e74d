import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Workflow } from '../workflow/workflow.ts';
import { logOut, withLogIn } from './docker-login.ts';

const login = { registry: 'registry.example.com:5000', account: 'home', token: 'home.secret' };
const auth = Buffer.from('home:home.secret').toString('base64');

let folder: string;
let env: Readonly<Record<string, string>>;
let written: string;
let workflow: Workflow;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-login-'));
  for (const name of ['temp', 'own', 'own/contexts']) mkdirSync(join(folder, name));
  const state = join(folder, 'state');
  writeFileSync(state, '');
  env = { RUNNER_TEMP: join(folder, 'temp'), DOCKER_CONFIG: join(folder, 'own'), GITHUB_STATE: state };
  written = '';
  workflow = new Workflow({ env, write: (text) => (written += text) });
});
afterEach(() => rmSync(folder, { recursive: true }));

test('adds a masked log-in to those of the job, and deletes it after the work', async () => {
  const own = { auths: { 'other.example.com': { auth: 'eDp5' } }, credsStore: 'desktop', currentContext: 'remote' };
  writeFileSync(join(folder, 'own/config.json'), JSON.stringify(own));
  await withLogIn(login, { env, workflow }, async ({ DOCKER_CONFIG: path = '' }) => {
    expect(JSON.parse(readFileSync(join(path, 'config.json'), 'utf8'))).toEqual({
      ...own,
      auths: { ...own.auths, 'registry.example.com:5000': { auth } },
      credHelpers: { 'registry.example.com:5000': '' },
    });
    expect(statSync(join(path, 'config.json')).mode & 0o777).toBe(0o600);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(readdirSync(path)).toContain('contexts');
  });
  expect(written).toBe(`::add-mask::${auth}\n`);
  expect(readdirSync(join(folder, 'temp'))).toEqual([]);
  expect(JSON.parse(readFileSync(join(folder, 'own/config.json'), 'utf8'))).toEqual(own);
});

test('docker finds the certificates of the job', async () => {
  const certificatesOf = async (more: Readonly<Record<string, string>>) =>
    await withLogIn(login, { env: { ...env, ...more }, workflow }, async ({ DOCKER_CERT_PATH: path }) => path);
  expect(await certificatesOf({ DOCKER_TLS_VERIFY: '1' })).toBe(join(folder, 'own'));
  expect(await certificatesOf({ DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: '/other' })).toBe('/other');
  expect(await certificatesOf({})).toBeUndefined();
});

test('deletes the log-in after work that fails, too; the post step finds the folder, and does nothing without one', async () => {
  const failing = withLogIn(login, { env, workflow }, async () => Promise.reject(new Error('broken')));
  await expect(failing).rejects.toThrow('broken');
  expect(readdirSync(join(folder, 'temp'))).toEqual([]);
  expect(readFileSync(join(folder, 'state'), 'utf8')).toMatch(/^docker-config<<.*\n.*\/temp\/berth-docker-\w+\n/);
  await logOut(workflow);
});
