// Takes about 35 s
/** The API against its OpenAPI document: schemathesis sends requests that the document allows, and requests that it forbids. */
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

/** A stream of a running backend stays open. */
const streams = '(stream|logs)$';

/** A cursor that every list accepts: the time and the ID of the last item. */
const cursor = Buffer.from(JSON.stringify(['2026-01-01T00:00:00.000Z', 'a'])).toString('base64url');

/**
 * Rules that the document cannot express: the format of image archives, and issuers of ID tokens, which are part of the
 * configuration. All other checks are on: no 5xx; only documented statuses, headers and bodies; allowed requests are accepted, and
 * forbidden ones rejected; no request succeeds without a valid token, or with another method.
 */
const rules = `
[[operations]]
include-operation-id = ["uploadImage", "createTrustRule"]
checks.positive_data_acceptance.enabled = false

[[operations]]
include-operation-id = ["earliestStatusStream", "earliestLogs"]
headers = { Accept = "text/event-stream" }

# The stream of a log-in stays open until the user confirms it.
[[operations]]
include-operation-id = ["cliLoginStatus"]
request-timeout = 1
`;

describe.skipIf(!python)(`schemathesis${python === undefined ? ' (skipped: it is not installed)' : ''}`, () => {
  let platform: TestPlatform;
  let folder: string;

  beforeAll(async () => {
    // No setting restricts requests: both forms of connection URLs are allowed, and any memory limit.
    const settings = {
      BERTH_SESSION_DOMAIN: 'sessions.localhost',
      BERTH_MEMORY_BYTES_LIMIT: String(Number.MAX_SAFE_INTEGER),
    };
    platform = await startPlatform({ settings });
    folder = await mkdtemp(join(tmpdir(), 'berth-schemathesis-'));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await platform[Symbol.asyncDispose]();
  });

  /** Runs schemathesis. `parameters` are the only values of path parameters. Returns the number of tested endpoints. */
  async function run(parameters: Readonly<Record<string, string>>, ...options: string[]): Promise<number> {
    const lines = Object.entries({ ...parameters, 'query.cursor': cursor }).map(
      ([name, value]) => `"${name}" = "${value}"`,
    );
    const config = join(folder, 'schemathesis.toml');
    await writeFile(config, `[parameters]\n${lines.join('\n')}\n${rules}`);
    const flags = '--max-examples 3 --request-timeout 10 --generation-deterministic --warnings off'.split(' ');
    const access = ['--header', `Authorization: Bearer ${platform.token}`];
    const program = ['-m', 'schemathesis.cli', '--no-color', '--config-file', config, 'run'];
    const args = [...program, `${platform.apiUrl}/openapi.json`, ...access, ...flags, ...options];
    const { code, stdout, stderr } = await tryCommand(python ?? '', args, { cwd: folder });
    // Its output contains each failed request, and a command that repeats it.
    if (code !== 0) throw new Error(`${stdout}${stderr}`);
    return Number(/Tested: (\d+)/.exec(stdout)?.[1]);
  }

  // First: there are no backends yet, whose streams would stay open.
  test('generated names, streams included', { timeout: 300_000 }, async () => {
    const tested = await run({}, '--phases', 'fuzzing');
    expect(tested).toBeGreaterThan(75);
  });

  test('existing resources', { timeout: 300_000 }, async () => {
    await uploadImage(platform);
    const { backend_id: backend } = await connect(platform, 'draw', { key: 'room-1' });
    const names = { account: platform.account, service: 'draw', environment: 'default' };
    const parameters = { ...names, backend_id: backend, backend_name: backend };
    const phases = ['--phases', 'examples,coverage,fuzzing'];
    const tested = await run(parameters, ...phases, '--exclude-path-regex', streams);
    expect(tested).toBeGreaterThan(65);
  });
});

async function uploadImage(platform: TestPlatform): Promise<void> {
  const { layers, config, manifest } = imageOf(['layer']);
  const archive = await tarOf(layoutOf([...layers, config, manifest], [{ blob: manifest }]));
  const uploaded = await api(platform, `/v2/service/${platform.account}/draw/images`, {
    method: 'POST',
    body: new Uint8Array(archive),
    headers: { 'content-type': 'application/x-tar' },
  });
  if (uploaded.status !== 201) throw new Error(`The image cannot be uploaded: ${await uploaded.text()}`);
}
