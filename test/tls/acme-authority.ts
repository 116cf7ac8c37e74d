/** A certificate authority with the protocol of Let's Encrypt, and its DNS server. Both run on this machine. */
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../../setup/command.ts';
import { newPair } from '../../core/tls/testing/new-pair.ts';
import { endProcess } from '../kit/machine/end-process.ts';
import { freePorts } from '../kit/machine/free-port.ts';
import type { AcmePrograms } from './acme-programs.ts';

export interface AcmeAuthority extends AsyncDisposable {
  /** The URL that ACME clients are configured with. */
  readonly directory: string;
  /** The certificate of that URL's server: clients must trust it to reach the authority. */
  readonly serverCertificate: string;
  /** The file with the authority's root certificate: a client that trusts it trusts all certificates of the authority. */
  readonly root: string;
  /** A script that sets the records of DNS-01 challenges, as lego's provider `exec` calls it. */
  readonly setRecord: string;
}

interface Options {
  readonly folder: string;
  /** The ports on which challenges without DNS are answered. */
  readonly httpPort: number;
  readonly tlsPort: number;
}

/** Starts the authority and its DNS server, with their files in a folder. */
export async function startAuthority(
  programs: AcmePrograms,
  { folder, httpPort, tlsPort }: Options,
): Promise<AcmeAuthority> {
  await using opening = new AsyncDisposableStack();
  const [acme, roots, dns, records] = await freePorts(4);
  const file = (name: string) => join(folder, name);
  const at = (port: number | undefined) => `127.0.0.1:${port}`;
  const pair = await newPair(['127.0.0.1']);
  const [serverCertificate, privateKey, root, setRecord] = ['server', 'server.key', 'root', 'set-record'].map(file) as [
    string,
    string,
    string,
    string,
  ];
  await writeFile(serverCertificate, pair.certificate);
  await writeFile(privateKey, pair.key);
  const pebble = {
    listenAddress: at(acme),
    managementListenAddress: at(roots),
    certificate: serverCertificate,
    privateKey,
    httpPort,
    tlsPort,
  };
  await writeFile(file('pebble.json'), JSON.stringify({ pebble }));
  const none = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', ''];
  opening.use(start(programs.dns, ['-dns01', at(dns), '-management', at(records), ...none]));
  opening.use(start(programs.pebble, ['-config', file('pebble.json'), '-dnsserver', at(dns)]));
  const curl = ['--silent', '--show-error', '--fail', '--retry', '60', '--retry-connrefused', '--retry-delay', '1'];
  await runCommand('curl', [...curl, '--cacert', serverCertificate, '--output', root, `https://${at(roots)}/roots/0`]);
  const script = `#!/bin/sh
[ "$1" = present ] && set=set-txt || set=clear-txt
exec curl --silent --fail --data "{\\"host\\": \\"$2\\", \\"value\\": \\"$3\\"}" http://${at(records)}/$set
`;
  await writeFile(setRecord, script, { mode: 0o755 });
  const opened = opening.move();
  return {
    directory: `https://${at(acme)}/dir`,
    serverCertificate,
    root,
    setRecord,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Starts a program, which is killed when it is disposed. */
export function start(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): AsyncDisposable {
  // By default, Pebble waits for seconds before it validates a challenge, and rejects requests at random.
  const calm = { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0' };
  const child = spawn(program, args, { env: { ...process.env, ...calm, ...env }, stdio: 'ignore' });
  return { [Symbol.asyncDispose]: async () => void (await endProcess(child, 'SIGKILL')) };
}
