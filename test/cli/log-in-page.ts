/** The pages of a log-in, as a browser without scripts uses them. */
import { expect } from 'vitest';

interface Credentials {
  readonly user_email: string;
  readonly password: string;
}

/** Logs in at the page that a command line has printed, and returns the code and the text of its question. */
export async function codeOfPage(page: string, credentials: Credentials): Promise<{ code: string; text: string }> {
  const { origin, pathname } = new URL(page);
  const form = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' };
  const body = new URLSearchParams({ ...credentials, next: pathname }).toString();
  const entered = await fetch(`${origin}/login`, { method: 'POST', headers: form, body, redirect: 'manual' });
  expect([entered.status, entered.headers.get('location')]).toEqual([303, pathname]);
  const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
  const text = await (await fetch(page, { headers: { cookie } })).text();
  const confirmed = await (await fetch(page, { method: 'POST', headers: { ...form, cookie } })).text();
  const code = /class="code">(\d{6})</.exec(confirmed)?.[1];
  if (code === undefined) throw new Error(`The page shows no code: ${confirmed}`);
  return { code, text };
}
