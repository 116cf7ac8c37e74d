import type { RequestListener } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { assign, becomeTerminated } from '../../model/backend.ts';
import { addUser, logIn } from '../testing/people.ts';
import type { Browser } from '../testing/people.ts';
import { becomeServing, connectPath, openTestApi } from '../testing/test-api.ts';
import type { TestApi } from '../testing/test-api.ts';
import { openTestNode } from '../testing/test-node.ts';

const parts = new AsyncDisposableStack();
let api: TestApi;
/** Logged in once, because checking a password takes a while. */
let viewer: Browser;
let other: Browser;
/** How the node answers requests for logs. */
let respond: RequestListener;

beforeAll(async () => {
  api = parts.use(await openTestApi());
  parts.use(await openTestNode(api, (request, response) => respond(request, response)));
  await addUser(api, 'viewer@example.com', 'acme', 'viewer');
  await addUser(api, 'other@example.com', 'others', 'owner');
  viewer = await logIn(api, 'viewer@example.com');
  other = await logIn(api, 'other@example.com');
});
afterAll(async () => await parts.disposeAsync());

function logsOf(lines: readonly string[]): RequestListener {
  const records = lines.map((line, i) => `${JSON.stringify({ at: `1767225600.000000000-${i}`, line })}\n`);
  return (_request, response) => void response.end(records.join(''));
}

/** The path of the readiness page of a backend that has failed with exit code 3. */
async function failedPath(): Promise<string> {
  const { backend_id: id, ready_url: url } = (await api.post(connectPath)).body;
  await api.change(id, (current) =>
    becomeTerminated(assign(current, 'node-1'), { kind: null, reason: null, exitCode: 3 }, new Date()),
  );
  return new URL(url).pathname;
}

const secret = 'the password is hunter2';

describe('the page of a backend that has failed', () => {
  test('shows members of the account its exit code and the last lines of its log, with HTML escaped', async () => {
    respond = logsOf([...Array.from({ length: 200 }, (_, i) => `line ${i}.`), '\u001b[31m<script>alert(1)</script>']);
    const path = await failedPath();
    const { status, body } = await viewer.get(path);
    expect(status).toBe(410);
    expect(body).toContain('<dt>Service</dt><dd>acme/draw</dd>');
    expect(body).toContain('<dt>Exit code</dt><dd>3</dd>');
    expect(body).not.toContain('<dt>Stopped</dt>');
    expect(body).toContain('&#60;script&#62;alert(1)&#60;/script&#62;</pre>');
    expect(body).not.toContain('\u001b');
    expect([body.includes('line 101.\n'), body.includes('line 100.\n')]).toEqual([true, false]);
  });

  test('shows members why it was stopped', async () => {
    respond = logsOf([]);
    const { backend_id: id, ready_url: url } = (await api.post(connectPath)).body;
    await api.change(id, (current) =>
      becomeTerminated(becomeServing(current), { kind: 'hard', reason: 'external', exitCode: 137 }, new Date()),
    );
    const { body } = await viewer.get(new URL(url).pathname);
    expect(body).toContain('This session has ended');
    expect(body).toContain('<dt>Stopped</dt><dd>external (hard)</dd>');
    expect(body).toContain('The log is empty.');
  });

  test('shows them after a link on another site, too, but never within another site', async () => {
    respond = logsOf([secret]);
    const path = await failedPath();
    const { body, headers } = await viewer.get(path, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' });
    expect(body).toContain(secret);
    expect(headers.get('access-control-allow-origin')).toBeNull();
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  });

  test('offers unauthenticated users only a log-in that leads back', async () => {
    respond = logsOf([secret]);
    const path = await failedPath();
    const { body } = await api.call('GET', path);
    expect(body).not.toContain(secret);
    expect(body).not.toContain('acme/draw');
    const target = /href="([^"]+)"/.exec(body)?.[1]?.replaceAll('&#38;', '&') ?? '';
    expect(target).toBe(`/login?next=${encodeURIComponent(path)}`);
    expect((await api.call('GET', target)).body).toContain(`name="next" value="${path}"`);
  });

  test('shows nothing to users of other accounts, nor for an access token in the cookie', async () => {
    respond = logsOf([secret]);
    const path = await failedPath();
    const { body } = await other.get(path);
    expect(body).not.toMatch(/hunter2|acme\/draw|log in/);
    const token = await api.call('GET', path, { headers: { cookie: `__Host-berth-session=${api.token}` } });
    expect(token.body).not.toMatch(/hunter2|acme\/draw/);
  });

  test('reports that the log cannot be read when its node does not answer', async () => {
    respond = (_request, response) => response.destroy();
    const { status, body } = await viewer.get(await failedPath());
    expect(status).toBe(410);
    expect(body).toContain('<dt>Exit code</dt><dd>3</dd>');
    expect(body).toContain('The node that has the log does not answer');
  });
});
