import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { CertificatePair } from '../certificate-pair.ts';

const run = promisify(execFile);

/** Creates a self-signed certificate for host names, with openssl. Clients trust it if it is among their authorities. */
export async function newPair(names: readonly string[], { days = 30 } = {}): Promise<CertificatePair> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-certificate-'));
  try {
    const [certificateFile, keyFile] = [join(folder, 'certificate'), join(folder, 'key')];
    const alternatives = names.map((name) => (/^[\d.:]+$/.test(name) ? `IP:${name}` : `DNS:${name}`)).join(',');
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile];
    const terms = ['-subj', '/CN=Test', '-days', `${days}`, '-addext', `subjectAltName=${alternatives}`];
    await run('openssl', ['req', '-x509', ...key, '-out', certificateFile, ...terms]);
    const read = async (file: string) => await readFile(file, 'utf8');
    return { certificate: await read(certificateFile), key: await read(keyFile) };
  } finally {
    await rm(folder, { recursive: true });
  }
}
