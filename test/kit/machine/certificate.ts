import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../../../setup/command.ts';

/** Creates `server.pem`, a certificate for some names, and `ca.pem`, the authority that signed it, both valid for two days. */
export async function makeCertificate(
  folder: string,
  names: readonly string[] = ['DNS:localhost', 'IP:127.0.0.1'],
): Promise<void> {
  const openssl = async (...args: string[]) => await runCommand('openssl', args, { cwd: folder });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const authority = ['-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Tests'];
  await openssl('req', '-x509', ...key, ...authority);
  await openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost');
  await writeFile(join(folder, 'names'), `subjectAltName=${names.join(',')}`);
  const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names', '-days', '2'];
  await openssl('x509', '-req', '-in', 'server.csr', ...signing, '-out', 'server.pem');
}
