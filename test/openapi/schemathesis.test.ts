// Takes about 60 s
/** The API against its OpenAPI document: schemathesis sends what the document allows, and what it forbids. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tryCommand } from '../../setup/command.ts';
import { schemathesisPython } from '../kit/packages/schemathesis.ts';
import { api, connect } from '../kit/platform/api-client.ts';
import { startPlatform } from '../kit/platform/platform.ts';
import type { TestPlatform } from '../kit/platform/platform.ts';
import { imageOf, layoutOf, tarOf } from '../kit/registry/archives.ts';

const python = await schemathesisPython();

/** What a response must be: no 5xx, a status, headers and a body that the document has, and none without a valid token. */
const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'ignored_auth',
];

/** A stream of a running backend stays open. */
const streams = '(stream|logs)$';

describe.skipIf(!python)(`schemathesis${python === undefined ? ' (skipped: it is not installed)' : ''}`, () => {
  let platform: TestPlatform;
  let folder: string;

  beforeAll(async () => {
    platform = await startPlatform();
    folder = await mkdtemp(join(tmpdir(), 'berth-schemathesis-'));
    const { layers, config, manifest } = imageOf(['layer']);
    const archive = await tarOf(layoutOf([...layers, config, manifest], [{ blob: manifest }]));
    const path = `/v2/service/${platform.account}/draw/images`;
    const uploaded = await api(platform, path, {
      method: 'POST',
      body: new Uint8Array(archive),
      headers: { 'content-type': 'application/x-tar' },
    });
    if (uploaded.status !== 201) throw new Error(`The image cannot be uploaded: ${await uploaded.text()}`);
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await platform[Symbol.asyncDispose]();
  });

  /** Runs schemathesis. `parameters` are the only values of path parameters. Returns how many endpoints it has tested. */
  async function run(parameters: Readonly<Record<string, string>>, ...options: string[]): Promise<number> {
    const lines = Object.entries(parameters).map(([name, value]) => `${name} = "${value}"`);
    const config = join(folder, 'schemathesis.toml');
    await writeFile(config, `[parameters]\n${lines.join('\n')}\n`);
    const flags = [
      ...`--phases examples,coverage,fuzzing --max-examples 15 --request-timeout 10`.split(' '),
      ...`--generation-deterministic --warnings off --checks ${checks.join(',')}`.split(' '),
    ];
    const access = ['--header', `Authorization: Bearer ${platform.token}`];
    const program = ['-m', 'schemathesis.cli', '--no-color', '--config-file', config, 'run'];
    const args = [...program, `${platform.apiUrl}/openapi.json`, ...access, ...flags, ...options];
    const { code, stdout, stderr } = await tryCommand(python ?? '', args, { cwd: folder });
    // What it prints names each request that failed, and how to repeat it.
    if (code !== 0) throw new Error(`${stdout}${stderr}`);
    return Number(/Tested: (\d+)/.exec(stdout)?.[1]);
  }

  test('what exists', { timeout: 600_000 }, async () => {
    const { backend_id: backend } = await connect(platform, 'draw', { key: 'room-1' });
    const names = { account: platform.account, service: 'draw', environment: 'default' };
    const tested = await run({ ...names, backend_id: backend, backend_name: backend }, '--exclude-path-regex', streams);
    expect(tested).toBeGreaterThan(30);
  });

  test('names of every kind, streams included', { timeout: 600_000 }, async () => {
    const tested = await run({});
    expect(tested).toBeGreaterThan(30);
  });
});
