/**
 * Simulates other machines for containers of this machine: a network namespace with its own addresses, a web server, and a DNS
 * server.
 */
import { spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { runCommand, tryCommand } from '../../../setup/command.ts';
import { endProcess } from './end-process.ts';

export const outsidePort = 8080;

/** The address to which the DNS server there resolves every name. */
export const outsideName = { address: '203.0.113.77', bytes: [203, 0, 113, 77] } as const;

/** Answers every HTTP request with the address to which it was sent, and every DNS query for an IPv4 address with `outsideName`. */
const server = `
  const answer = (dns) => (query, { port, address }) => {
    const end = query.indexOf(0, 12) + 5;
    const isV4 = query[end - 3] === 1;
    const head = Buffer.from([query[0], query[1], 0x81, 0x80, 0, 1, 0, isV4 ? 1 : 0, 0, 0, 0, 0]);
    const record = isV4 ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ${outsideName.bytes.join(', ')}] : [];
    dns.send(Buffer.concat([head, query.subarray(12, end), Buffer.from(record)]), port, address);
  };
  // One socket per address, so that an answer comes from the address of the query.
  const bound = process.argv.slice(1).map((own) => new Promise((resolve) => {
    const dns = require('node:dgram').createSocket('udp4');
    dns.on('message', answer(dns)).bind(53, own, resolve);
  }));
  const server = require('node:http').createServer((request, response) => response.end(request.socket.localAddress + '\\n'));
  Promise.all(bound).then(() => server.listen(${outsidePort}, '0.0.0.0', () => console.log('listening')));
`;

/** Opens a namespace with these IPv4 addresses, which this machine routes to it. Only root can. */
export async function openOutsideNetwork(addresses: readonly string[]): Promise<AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const name = `berth-${randomBytes(3).toString('hex')}`;
  const [here, there] = [`${name}h`, `${name}t`];
  await runCommand('ip', ['netns', 'add', name]);
  // The kernel removes both ends of the pair with the namespace, as soon as its last process has ended.
  opening.defer(async () => void (await tryCommand('ip', ['link', 'del', here])));
  opening.defer(async () => void (await tryCommand('ip', ['netns', 'del', name])));
  await runCommand('ip', ['link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', name]);
  // From the range for carrier-grade translation: routes to it exist nowhere else.
  const subnet = `100.127.${randomInt(256)}`;
  const [gateway, own] = [`${subnet}.1`, `${subnet}.2`];
  await runCommand('ip', ['address', 'add', `${gateway}/30`, 'dev', here]);
  await runCommand('ip', ['link', 'set', here, 'up']);
  const inside = async (...args: string[]) => await runCommand('ip', ['-n', name, ...args]);
  await inside('link', 'set', 'lo', 'up');
  await inside('address', 'add', `${own}/30`, 'dev', there);
  await inside('link', 'set', there, 'up');
  await inside('route', 'add', 'default', 'via', gateway);
  for (const address of addresses) {
    await inside('address', 'add', `${address}/32`, 'dev', 'lo');
    await runCommand('ip', ['route', 'add', `${address}/32`, 'via', own, 'dev', here]);
  }
  const child = spawn('ip', ['netns', 'exec', name, process.execPath, '-e', server, ...addresses], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  opening.defer(async () => void (await endProcess(child, 'SIGKILL')));
  await once(createInterface(child.stdout), 'line');
  const owned = opening.move();
  return { [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
