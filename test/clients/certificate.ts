/** A certificate for an address, and the authority that signed it, which no client trusts by default. */
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeCertificate } from '../kit/machine/certificate.ts';

export interface Certificate {
  readonly key: Buffer;
  readonly cert: Buffer;
  /** The file of the authority's certificate. */
  readonly authority: string;
  /** A folder with only that file, as `ca.crt`, for docker, skopeo, podman and buildah. */
  readonly authorityFolder: string;
}

/** Creates the certificate and its authority. */
export async function certificateFor(folder: string, address: string): Promise<Certificate> {
  await makeCertificate(folder, [`IP:${address}`]);
  const authorityFolder = join(folder, 'authority');
  const authority = join(authorityFolder, 'ca.crt');
  await mkdir(authorityFolder);
  await copyFile(join(folder, 'ca.pem'), authority);
  const [key, cert] = [await readFile(join(folder, 'server.key')), await readFile(join(folder, 'server.pem'))];
  return { key, cert, authority, authorityFolder };
}
