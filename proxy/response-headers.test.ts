import { expect, test } from 'vitest';
import { exchangeBytes, openFixture, spawnReady, startRawProgram } from './testing/fixture.ts';

/** The bytes that a client receives if the backend answers with these bytes. */
async function answered(answer: string, start = 'GET', version = '1.1'): Promise<string> {
  return (await answeredTo(answer, start, version)).got;
}

/** The same, with the connection token of the session. */
async function answeredTo(answer: string, start = 'GET', version = '1.1'): Promise<{ got: string; token: string }> {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => socket.end(answer, 'latin1'));
  const { token } = await spawnReady(fixture, program);
  const head = `${start} /${token}/ HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`;
  return { got: await exchangeBytes(fixture.port, head), token };
}

test('headers keep their order, spelling, duplicates and bytes', async () => {
  const { got, token } = await answeredTo(
    'HTTP/1.1 200 Sure\r\nX-First: 1\r\nSet-Cookie: a=1; Path=/; HttpOnly\r\nsEt-cOOkie: b=2\r\nX-Latin: caf\xe9\r\nContent-Length: 2\r\n\r\nok',
  );
  expect(got).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(got).toContain(
    `X-First: 1\r\nSet-Cookie: a=1; Path=/${token}/; HttpOnly\r\nsEt-cOOkie: b=2\r\nX-Latin: caf\xe9\r\nContent-Length: 2\r\n`,
  );
  expect(got.endsWith('\r\n\r\nok')).toBe(true);
});

test('a head with bytes above ASCII that is sent before its body keeps them', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nX-Latin: caf\xe9\r\nContent-Length: 2\r\n\r\n', 'latin1');
    setTimeout(() => socket.end('ok'), 50);
  });
  const { token } = await spawnReady(fixture, program);
  const got = await exchangeBytes(fixture.port, `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(got).toContain('X-Latin: caf\xe9\r\n');
});

test('a redirect to the port of the program stays in the session, also if connections are forwarded to it', async () => {
  await using fixture = await openFixture();
  await using program = await startRawProgram((socket) => {
    socket.end('HTTP/1.1 302 Found\r\nLocation: http://a:8888/notes/\r\nContent-Length: 0\r\n\r\n');
  });
  const { token } = await spawnReady(fixture, { address: { ...program.address, targetPort: 8888 } });
  const got = await exchangeBytes(fixture.port, `GET /${token}/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  expect(got).toContain(`Location: /${token}/notes/\r\n`);
});

test('a backend cannot send headers of the platform or for the whole host', async () => {
  const forbidden = [
    'X-Berth-Error: gone',
    'x-verified-username: mallory',
    'X_Verified_Secret: mallory',
    'Clear-Site-Data: "*"',
    'Service-Worker-Allowed: /',
    'Strict-Transport-Security: max-age=1',
    'Alt-Svc: h2="evil"',
    'NEL: {}',
    'Report-To: {}',
    'Set-Cookie: __Host-berth-session=planted; Secure; Path=/',
    'Set-Cookie: BERTH_x=planted',
    'Set-Cookie: =berth_x=planted',
    'Set-Cookie:  = berth_x=planted; Path=/',
    'Set-Cookie: ==__Host-berth-session=planted',
    'Set-Cookie: berth_planted',
  ];
  const { got, token } = await answeredTo(
    `HTTP/1.1 200 OK\r\n${forbidden.join('\r\n')}\r\nSet-Cookie: own=1; Domain=example.com; Path=/x\r\nContent-Length: 0\r\n\r\n`,
  );
  const names = got.split('\r\n').map((line) => line.split(':')[0]?.toLowerCase());
  for (const line of forbidden.filter((each) => !each.startsWith('Set-Cookie')))
    expect(names).not.toContain(line.split(':')[0]?.toLowerCase());
  expect(got).not.toContain('planted');
  expect(got).toContain(`Set-Cookie: own=1; Path=/${token}/x\r\n`);
});

test.each([
  ['all paths', '; Path=/', '; Path=/<prefix>/'],
  ['a path', '; Secure; path = /a/b;HttpOnly', '; Secure; path = /<prefix>/a/b;HttpOnly'],
  ['several paths', '; Path=/a; PATH=/; Path=/b', '; Path=/<prefix>/a; PATH=/<prefix>/; Path=/<prefix>/b'],
  ['another session', `; Path=/${'0'.repeat(43)}/`, `; Path=/<prefix>/${'0'.repeat(43)}/`],
  ['its own session', '; Path=/<prefix>/a', '; Path=/<prefix>/a'],
  ['all of its own session', '; Path=/<prefix>', '; Path=/<prefix>'],
  ['a path that only begins like its own session', '; Path=/<prefix>x', '; Path=/<prefix>/<prefix>x'],
  ['none', '; Secure', '; Secure'],
  ['an empty one', '; Path=', '; Path='],
  ['an invalid path', '; Path=x; Path', '; Path=x; Path'],
])('a cookie for %s stays with its session', async (_name, attributes, expected) => {
  await using fixture = await openFixture();
  const cookie = (text: string) => `Set-Cookie: a=/b; Path-ish=/${text.replaceAll('<prefix>', session.token)}\r\n`;
  await using program = await startRawProgram((socket, head) => {
    const upgrade = head.includes('Upgrade') ? '101 S\r\nConnection: Upgrade\r\nUpgrade: x' : '200 OK';
    socket.end(`HTTP/1.1 ${upgrade}\r\n${cookie(attributes)}\r\n`);
  });
  const session = await spawnReady(fixture, program);
  for (const connection of ['close', 'Upgrade\r\nUpgrade: x']) {
    const head = `GET /${session.token}/x HTTP/1.1\r\nHost: a\r\nConnection: ${connection}\r\n\r\n`;
    expect(await exchangeBytes(fixture.port, head)).toContain(cookie(expected));
  }
});

test('hop-by-hop headers are not forwarded', async () => {
  const got = await answered(
    'HTTP/1.1 200 OK\r\nConnection: x-private, close, content-length\r\nX-Private: 1\r\nKeep-Alive: timeout=9\r\nUpgrade: foo\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nok',
  );
  expect(got).not.toMatch(/x-private|timeout=9|upgrade|proxy-authenticate/i);
  expect(got).toContain('Content-Length: 2\r\n');
});

test.each([
  ['both lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello'],
  ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
  [
    'an upgrade that was not requested',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n',
  ],
  ['nothing', ''],
  ['half a head', 'HTTP/1.1 200 OK\r\nContent-Le'],
  ['an invalid status', 'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n'],
  ['a head without an end', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(64 * 1024)}\r\n\r\n`],
])('an invalid answer is 502: %s', async (_name, answer) => {
  const got = await answered(answer);
  expect(got).toMatch(/^HTTP\/1\.1 502 /);
  expect(got).toContain('x-berth-error: backend-unreachable\r\n');
});

test('bytes after an answer are not sent as part of the next one', async () => {
  await using fixture = await openFixture();
  let count = 0;
  await using program = await startRawProgram((socket) => {
    count += 1;
    const poison = 'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison';
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood${count === 1 ? poison : ''}`);
  });
  const { token } = await spawnReady(fixture, program);
  for (let i = 0; i < 3; i += 1) expect(await (await fetch(`${fixture.url}/${token}/`)).text()).toBe('good');
});

test.each(['204 No Content', '304 Not Modified'])('%s has no body', async (status) => {
  const got = await answered(`HTTP/1.1 ${status}\r\nETag: "x"\r\n\r\n`);
  expect(got).toMatch(new RegExp(`^HTTP/1\\.1 ${status}\r\n`));
  expect(got).not.toMatch(/transfer-encoding/i);
  expect(got.endsWith('\r\n\r\n')).toBe(true);
});

test('an answer to HEAD keeps its Content-Length', async () => {
  const got = await answered('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n', 'HEAD');
  expect(got).toContain('Content-Length: 1000\r\n');
  expect(got.endsWith('\r\n\r\n')).toBe(true);
});

test('for HTTP/1.0 a chunked answer ends with the connection', async () => {
  const got = await answered(
    'HTTP/1.1 200 OK\r\nTrailer: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: 1\r\n\r\n',
    'GET',
    '1.0',
  );
  expect(got).not.toMatch(/transfer-encoding/i);
  expect(got.endsWith('\r\n\r\nok')).toBe(true);
});

test('trailers are forwarded, apart from those reserved for the platform', async () => {
  const got = await answered(
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nX-Berth-Error: gone\r\nSet-Cookie: a=1\r\n\r\n',
  );
  expect(got).toMatch(/\r\n0\r\nX-Sum: 1\r\n\r\n$/);
});
