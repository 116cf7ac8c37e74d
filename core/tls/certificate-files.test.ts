import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { beforeAll, expect, test } from 'vitest';
import { collectLog } from '../../test/kit/collect-log.ts';
import { ManualClock } from '../clock/testing/manual-clock.ts';
import { CertificateFiles, reloadEveryMs } from './certificate-files.ts';
import type { CertificatePair } from './certificate-pair.ts';
import { newPair } from './testing/new-pair.ts';

let first: CertificatePair;
let second: CertificatePair;
beforeAll(async () => {
  [first, second] = await Promise.all([newPair(['first.example']), newPair(['second.example', '*.second.example'])]);
});

const dayMs = 24 * 3600 * 1000;

/** A pair of files as certbot creates them: links, which a renewal replaces. */
async function fixture(clock = new ManualClock(new Date())) {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'berth-certificates-'));
  opened.defer(async () => await rm(folder, { recursive: true }));
  const file = (name: string) => join(folder, name);
  const files = { certificateFile: file('fullchain.pem'), keyFile: file('privkey.pem') };
  let version = 0;
  const link = async (path: string, text: string) => {
    version += 1;
    await writeFile(file(`version-${version}`), text);
    await symlink(`version-${version}`, file('link'));
    await rename(file('link'), path);
  };
  const replace = async ({ certificate, key }: Partial<CertificatePair>) => {
    if (key !== undefined) await link(files.keyFile, key);
    if (certificate !== undefined) await link(files.certificateFile, certificate);
  };
  const { log, lines } = collectLog();
  const metrics = new Registry();
  const open = async () => await CertificateFiles.open([files], { clock, log, metrics });
  const problems = () => lines.filter(({ level }) => level === 'error' || level === 'warn');
  const resources = opened.move();
  return {
    files,
    replace,
    open,
    clock,
    lines,
    problems,
    metrics,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

test('a new pair is used within ten seconds', async () => {
  await using folder = await fixture();
  await folder.replace(first);
  await using certificates = await folder.open();
  const changes: (readonly CertificatePair[])[] = [];
  certificates.onChange((pairs) => changes.push(pairs));
  const ended: (readonly CertificatePair[])[] = [];
  certificates.onChange((pairs) => ended.push(pairs))[Symbol.dispose]();
  expect(certificates.pairs).toEqual([first]);
  await folder.replace(second);
  await folder.clock.advance(reloadEveryMs);
  await certificates.reload();
  expect(certificates.pairs).toEqual([second]);
  await certificates.reload();
  expect(changes).toEqual([[second]]);
  expect(ended).toEqual([]);
  expect(folder.problems()).toEqual([]);
});

test.each<[string, (pair: CertificatePair) => Partial<CertificatePair>, RegExp]>([
  ['a key of another certificate', ({ key }) => ({ key }), /does not belong/],
  [
    'half a certificate',
    ({ certificate }) => ({ certificate: certificate.slice(0, 300) }),
    /certificate cannot be read/,
  ],
  [
    'half a chain',
    ({ certificate, key }) => ({ key, certificate: certificate + certificate.slice(0, 300) }),
    /after the first/,
  ],
  ['an empty file', () => ({ key: '' }), /key cannot be read/],
])('%s is not used, and is reported when it is found again', async (_name, broken, message) => {
  await using folder = await fixture();
  await folder.replace(first);
  await using certificates = await folder.open();
  await folder.replace(broken(second));
  await certificates.reload();
  expect(folder.problems()).toEqual([]);
  await certificates.reload();
  await certificates.reload();
  expect(folder.problems()).toMatchObject([
    { level: 'error', err: { message: expect.stringMatching(message) as string } },
  ]);
  expect(certificates.pairs).toEqual([first]);
  const files = await folder.metrics.getSingleMetricAsString('berth_tls_certificate_files_ok');
  expect(files).toMatch(/\} 0$/m);
  await folder.replace(second);
  await certificates.reload();
  expect(certificates.pairs).toEqual([second]);
  expect(await folder.metrics.getSingleMetricAsString('berth_tls_certificate_files_ok')).toMatch(/\} 1$/m);
});

test('a start without a usable pair fails with the name of the file', async () => {
  await using folder = await fixture();
  await expect(folder.open()).rejects.toThrow(/fullchain\.pem cannot be read \(ENOENT\)|privkey\.pem cannot be read/);
  await folder.replace({ certificate: first.certificate, key: second.key });
  await expect(folder.open()).rejects.toThrow(`(${folder.files.certificateFile}, ${folder.files.keyFile})`);
});

test('a certificate that is not renewed causes a warning each day, and an error when it has expired', async () => {
  await using folder = await fixture();
  await folder.replace(first);
  await using certificates = await folder.open();
  const pass = async (days: number) => {
    folder.clock.set(days * dayMs);
    await certificates.reload();
    await certificates.reload();
  };
  await pass(20);
  expect(folder.problems()).toEqual([]);
  await pass(5);
  expect(folder.problems().at(-1)).toMatchObject({
    level: 'warn',
    msg: expect.stringContaining('expires soon') as string,
  });
  await pass(6);
  expect(folder.problems().at(-1)).toMatchObject({ level: 'error', msg: 'A TLS certificate has expired' });
  expect(folder.problems()).toHaveLength(2);
  const expiry = await folder.metrics.getSingleMetricAsString('berth_tls_certificate_expiry_timestamp_seconds');
  const seconds = Number(/fullchain\.pem"\} (\d+)$/m.exec(expiry)?.[1]);
  expect(Math.abs(seconds - Date.now() / 1000 - 30 * 24 * 3600)).toBeLessThan(3600);
});
