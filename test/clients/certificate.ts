/** A certificate for an address, and the authority that signed it, which no client trusts by default. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../setup/command.ts';

export interface Certificate {
  readonly key: Buffer;
  readonly cert: Buffer;
  /** The file of the authority's certificate. */
  readonly authority: string;
  /** A folder with only that file, as `ca.crt`, for docker, skopeo, podman and buildah. */
  readonly authorityFolder: string;
}

/** Creates the certificate and its authority with openssl. */
export async function makeCertificate(folder: string, address: string): Promise<Certificate> {
  const authorityFolder = join(folder, 'authority');
  await mkdir(authorityFolder, { recursive: true });
  const authority = join(authorityFolder, 'ca.crt');
  const file = (name: string) => join(folder, name);
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const run = async (...args: string[]) => await runCommand('openssl', args);
  await run('req', '-x509', ...newKey, '-keyout', file('ca.key'), '-out', authority, '-subj', '/CN=Test', '-days', '2');
  await run('req', ...newKey, '-keyout', file('key'), '-out', file('request'), '-subj', '/CN=registry');
  await writeFile(file('extensions'), `subjectAltName=IP:${address}\n`);
  const signed = ['-CA', authority, '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '2'];
  await run('x509', '-req', '-in', file('request'), ...signed, '-out', file('cert'), '-extfile', file('extensions'));
  return { key: await readFile(file('key')), cert: await readFile(file('cert')), authority, authorityFolder };
}

/**
 * An address of this machine besides loopback, or `undefined` if there is none. Docker and crane accept untrusted certificates
 * from a registry on loopback.
 */
export function outerAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
}
