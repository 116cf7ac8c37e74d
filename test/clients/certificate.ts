/** A certificate for an address, and the authority that signed it, which nobody trusts who is not told to. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../setup/command.ts';

export interface Certificate {
  readonly key: Buffer;
  readonly cert: Buffer;
  /** The file of the authority's certificate. */
  readonly authority: string;
  /** A folder with that file alone, as `ca.crt`: the form that docker, skopeo, podman and buildah take. */
  readonly authorityFolder: string;
}

/** Makes both with openssl. */
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
 * An address of this machine that is not its loopback, or `undefined` if it has no other: with a registry on the loopback,
 * docker and crane make do without a certificate that they trust.
 */
export function outerAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return all.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
}
