import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { commitLabels } from '../client/tools/commit-labels.ts';
import { currentCommit } from './commit.ts';

const hash = '0123456789abcdef0123456789abcdef01234567';
const message = 'Draw "circles"\n\nEOF\n::error::x';
const { signal } = new AbortController();

let folder: string;
let env: Readonly<Record<string, string>>;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-commit-'));
  const event = join(folder, 'event.json');
  writeFileSync(event, JSON.stringify({ head_commit: { id: hash, message } }));
  env = {
    PATH: '/nowhere',
    GITHUB_EVENT_PATH: event,
    GITHUB_SHA: hash,
    GITHUB_REF_NAME: 'main',
    GITHUB_REPOSITORY: 'acme/draw',
    GITHUB_SERVER_URL: 'https://git.example.com',
  };
});
afterAll(() => rmSync(folder, { recursive: true }));

test('the commit of a push has the message of the event, the labels that the registry reads, and those of OCI', async () => {
  expect(commitLabels(await currentCommit(env, signal))).toEqual({
    hash,
    branch: 'main',
    repository: 'acme/draw',
    message,
    'org.opencontainers.image.revision': hash,
    'org.opencontainers.image.ref.name': 'main',
    'org.opencontainers.image.source': 'https://git.example.com/acme/draw',
  });
});

test('the commit of a pull request has its branch, and not the message of another commit', async () => {
  const pull = { ...env, GITHUB_SHA: hash.toUpperCase(), GITHUB_REF_NAME: '7/merge', GITHUB_HEAD_REF: 'circles' };
  expect(await currentCommit(pull, signal)).toMatchObject({ branch: 'circles', message: '' });
});

test('a tag is not a branch', async () => {
  const tag = { ...env, GITHUB_REF_TYPE: 'tag', GITHUB_REF_NAME: 'v1.2' };
  expect(commitLabels(await currentCommit(tag, signal))).not.toHaveProperty('branch');
});

test('without git and an event, unknown values have no label', async () => {
  expect(commitLabels(await currentCommit({ PATH: '/nowhere', GITHUB_SHA: hash }, signal))).toEqual({
    hash,
    'org.opencontainers.image.revision': hash,
  });
});
