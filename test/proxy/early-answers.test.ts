/** A server of Python's standard library rejects uploads before it has read them, and closes the connection. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../setup/command.ts';
import { endProcess } from '../kit/machine/end-process.ts';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import type { TemporaryFolder } from '../kit/machine/temporary-folder.ts';
import { openFixture, spawn as spawnBackend, spawnReady } from '../../proxy/testing/fixture.ts';
import type { Fixture } from '../../proxy/testing/fixture.ts';
import { startNode } from '../../proxy/testing/node.ts';

/** More than the buffers of all connections on the way. */
const uploadBytes = 10_000_000;

/** At a time, so that the connections compete for the proxy. */
const uploads = 10;

const server = `
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        self.rfile.read(100000)
        self.send_response(413)
        self.send_header('content-length', '8')
        self.send_header('connection', 'close')
        self.end_headers()
        self.wfile.write(b'too big\\n')
        self.close_connection = True
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
`;

let folder: TemporaryFolder;
let python: ChildProcess;
let address: { readonly host: string; readonly port: number };

beforeAll(async () => {
  folder = await temporaryFolder();
  await writeFile(join(folder.path, 'upload'), Buffer.alloc(uploadBytes));
  python = spawn('python3', ['-c', server], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [port] = (await once(python.stdout!, 'data')) as [Buffer];
  address = { host: '127.0.0.1', port: Number(port) };
});
afterAll(async () => {
  await endProcess(python, 'SIGKILL');
  await folder[Symbol.asyncDispose]();
});

test.each(['plain', 'general'] as const)('curl gets its answer on the %s path', async (path) => {
  await using fixture = await openFixture({ path });
  const { token } = await spawnReady(fixture, { address });
  expect(await answers(fixture, token)).toEqual(Array(uploads).fill('too big\n413\n'));
});

test.each(['plain', 'general'] as const)('curl gets its answer from another node on the %s path', async (path) => {
  await using fixture = await openFixture({ path });
  await using node = await startNode(fixture);
  const { token, backend } = await spawnBackend(fixture);
  await node.adopt(backend, { address });
  expect(await answers(fixture, token)).toEqual(Array(uploads).fill('too big\n413\n'));
});

async function answers({ url }: Fixture, token: string): Promise<string[]> {
  const file = `@${join(folder.path, 'upload')}`;
  const args = ['--silent', '--write-out', '%{http_code}', '--data-binary', file, '--header', 'Expect:'];
  const upload = () => runCommand('curl', [...args, `${url}/${token}/`]);
  return await Promise.all(Array.from({ length: uploads }, upload));
}
