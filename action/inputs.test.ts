import { describe, expect, test } from 'vitest';
import { readInputs } from './inputs.ts';

const hash = '0123456789abcdef0123456789abcdef01234567';

function read(inputs: Readonly<Record<string, string>>) {
  const given = { host: 'https://berth.example.com', service: 'draw', token: 'home.berth_dep_x', ...inputs };
  const variables = Object.entries(given).map(([name, value]) => [`INPUT_${name.toUpperCase()}`, value]);
  return readInputs({ GITHUB_SHA: hash, ...(Object.fromEntries(variables) as Record<string, string>) });
}

describe('inputs', () => {
  test('by default, builds the workspace with a tag for its commit', () => {
    expect(read({})).toEqual({
      host: 'https://berth.example.com',
      token: 'home.berth_dep_x',
      account: 'home',
      service: 'draw',
      environment: 'default',
      source: { kind: 'build', build: { context: '.', file: undefined, buildArgs: [], platforms: [] } },
      tags: ['sha-0123456789ab'],
      waitForReady: false,
      readyTimeoutMs: 300_000,
      rollbackOnFailure: false,
    });
  });

  test('lists are separated by commas or line breaks; build arguments only by line breaks', () => {
    const inputs = read({ tags: 'v1, v2\n v1\n', 'build-args': 'A=1,2\r\nB\n', platforms: 'linux/amd64,linux/arm64' });
    expect(inputs.tags).toEqual(['v1', 'v2']);
    const build = { buildArgs: ['A=1,2', 'B'], platforms: ['linux/amd64', 'linux/arm64'] };
    expect(inputs.source).toMatchObject({ kind: 'build', build });
  });

  test.each([
    [
      { token: 'plain', service: 'acme/draw' },
      { account: 'acme', service: 'draw' },
    ],
    [
      { token: '', account: 'acme' },
      { account: 'acme', service: 'draw', token: undefined },
    ],
    [{ token: 'home.x', account: 'acme' }, { account: 'acme' }],
    [{ host: 'berth.example.com/api/' }, { host: 'https://berth.example.com/api' }],
    [{ host: 'http://127.0.0.1:7100' }, { host: 'http://127.0.0.1:7100' }],
    [
      { 'wait-for-ready': 'True', 'rollback-on-failure': 'TRUE' },
      { waitForReady: true, rollbackOnFailure: true },
    ],
    [{ image: 'draw:v1' }, { source: { kind: 'image', image: 'draw:v1' } }],
    [{ archive: 'a b.tar' }, { source: { kind: 'archive', path: 'a b.tar' } }],
  ])('%j', (inputs, expected) => {
    expect(read(inputs)).toMatchObject(expected);
  });

  test.each<[Readonly<Record<string, string>>, string]>([
    [{ host: '' }, 'host: Set it'],
    [{ host: 'http://berth.example.com' }, 'host: Use https'],
    [{ host: 'https://user:secret@berth.example.com' }, 'host: It is not an address'],
    [{ host: 'ftp://berth.example.com' }, 'host: It is not an address'],
    [{ token: 'one\ntwo' }, 'token: It must not contain'],
    [{ token: 'home.x…' }, 'token: It must not contain'],
    [{ service: '' }, 'service: Set it'],
    [{ service: 'a/b/c' }, 'service: Use SERVICE or'],
    [{ service: 'other/draw', account: 'home' }, 'account: It is "home", but'],
    [{ token: '' }, 'account: Set it'],
    [{ image: 'a', archive: 'b' }, 'archive: Give either'],
    [{ image: 'a', 'build-args': 'A=1' }, 'build-args: It is for builds'],
    [{ archive: 'a', platforms: 'linux/amd64' }, 'platforms: It is for builds'],
    [{ 'build-args': '--privileged' }, 'build-args: "--privileged" is not'],
    [{ tags: 'v1,-x' }, 'tags: "-x" is not a tag'],
    [{ 'wait-for-ready': 'yes' }, 'wait-for-ready: Use true or false'],
    [{ 'ready-timeout-seconds': '0' }, 'ready-timeout-seconds: Use a number'],
    [{ 'rollback-on-failure': 'true' }, 'rollback-on-failure: It needs wait-for-ready'],
  ])('%j is refused', (inputs, message) => {
    expect(() => read(inputs)).toThrow(message);
  });

  test('all problems are reported at once, without the token', () => {
    const problems = () => read({ host: 'x y', token: 'secret one', tags: '?', 'wait-for-ready': '1' });
    expect(problems).toThrow(/^token: [^]*\nhost: [^]*\naccount: [^]*\ntags: [^]*\nwait-for-ready: /);
    expect(problems).not.toThrow(/secret/);
  });
});
