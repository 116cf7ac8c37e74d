/**
 * The first program in the network namespace of Chromium: it starts Chromium and forwards its connections to the proxy outside.
 * Arguments: the Unix socket of the proxy, then Chromium's program and arguments.
 */
import { execFileSync, spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';

/** The port inside the namespace, where no other server listens. */
export const socksPort = 1080;

/**
 * Chromium reports that it is offline unless an interface other than `lo` has an address. RFC 5737 reserves this address for
 * examples. The kernel must not add an IPv6 address, because it would appear seconds later.
 */
const interfaces = [
  ['link', 'set', 'lo', 'up'],
  ['link', 'add', 'online', 'type', 'veth', 'peer', 'name', 'peer'],
  ['link', 'set', 'online', 'addrgenmode', 'none'],
  ['link', 'set', 'peer', 'addrgenmode', 'none'],
  ['address', 'add', '192.0.2.1/24', 'dev', 'online'],
  ['link', 'set', 'online', 'up'],
  ['link', 'set', 'peer', 'up'],
];

if (import.meta.main) {
  const [socket = '', program = '', ...args] = process.argv.slice(2);
  for (const words of interfaces) execFileSync('ip', words);
  createServer((client) => {
    const proxy = connect(socket);
    pipeline(client, proxy, client, () => {});
  }).listen(socksPort, '127.0.0.1', () => {
    // All file descriptors that Chromium uses to talk to the test.
    const chromium = spawn(program, args, { stdio: [0, 1, 2, 3, 4] });
    chromium.once('exit', (code) => process.exit(code ?? 1));
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => chromium.kill(signal));
  });
}
