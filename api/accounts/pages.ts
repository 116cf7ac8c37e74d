/** Pages for logging in, without scripts: forms that browsers send themselves. */
import type { Express, Request, RequestHandler, Response } from 'express';
import { ZodError } from 'zod';
import { invitationRequest, logInRequest, minPasswordLength, setUpRequest } from '../../contract/people.ts';
import { serviceErrors } from '../../contract/errors.ts';
import { BodyError } from '../../core/http/json-bodies.ts';
import { escapeHtml, htmlPage, inlineSource, pageHeaders } from '../../core/http/page.ts';
import { publicTokenId } from '../../model/access-token.ts';
import { ApiError } from '../../model/api-error.ts';
import type { Permissions } from '../../model/permissions.ts';
import type { Mounted } from '../app.ts';
import { anonymous, sessionPermissions, sessionUser } from '../access.ts';
import type { Caller } from '../access.ts';
import { networkShare } from '../call.ts';
import { recordedAfterwards } from '../audit.ts';
import type { AuditedCall } from '../audit.ts';
import type { Api } from '../dependencies.ts';
import { explain, setRetryAfter } from '../errors.ts';
import { confirmCliLogin, openCliLogin } from './cli-logins.ts';
import { beginSession, checkPassword, endSession } from './log-in.ts';
import { acceptInvitation, setUpWith } from './sessions.ts';
import { assertOwnPage, assertSameOrigin, noSessionCookie } from './session-cookie.ts';

/** An e-mail address, a password and a code are far smaller. */
const maxFormBytes = 8 * 1024;

/** Where a log-in may redirect: only to our own pages, so that a link to us cannot lead to another site. */
const nextPattern = /^\/(?:cli-login\/[\w-]{43}|ready\/[a-z0-9]{1,64}\/(?:[\w-]{43}|[a-z2-7]{52})\/)$/;

export const accountPages: Mounted = { mount: mountPages };

function mountPages(app: Express, api: Api): void {
  const get = (path: string, handle: RequestHandler) => void app.get(path, handle);
  const post = (path: string, handle: Handle) => void app.post(path, formHandler(api, handle));
  app.get('/login', async (request, response) => {
    const next = nextOf(request.query['next']);
    const user = await sessionUser(api, request);
    if (user === undefined) sendPage(response, 200, logInPage(next));
    else if (next === undefined) sendPage(response, 200, loggedInPage(user));
    else response.redirect(303, next);
  });
  post('/login', async ({ request, response, form }) => {
    const next = nextOf(form['next']);
    const body = logInRequest.parse(pick(form, ['user_email', 'password']));
    const { user_email: email, password } = body;
    const session = await recordedForm(api, { action: 'logIn', request, body }, async () =>
      beginSession(api, request, await checkPassword(api, request, { email, password })),
    );
    response.setHeader('set-cookie', session.cookies);
    response.redirect(303, next ?? '/login');
  });
  post('/logout', async ({ request, response }) => {
    assertOwnPage(request, api.urls.api);
    const session = await sessionPermissions(api, request);
    const parameters = session && { uuid: publicTokenId({ id: session.token }) };
    const end = async () => await endSession(api, request);
    await (session ? recordedForm(api, { action: 'logOut', request, session, parameters }, end) : end());
    response.setHeader('set-cookie', noSessionCookie);
    response.redirect(303, '/login');
  });
  get('/setup', (_request, response) => sendPage(response, 200, setUpPage()));
  post('/setup', async ({ request, response, form }) => {
    const body = setUpRequest.parse(form);
    await recordedForm(api, { action: 'setUp', request, body }, async () => await setUpWith(api, request, body));
    response.redirect(303, '/login');
  });
  get('/invitation', (_request, response) => sendPage(response, 200, invitationPage()));
  post('/invitation', async ({ request, response, form }) => {
    const body = invitationRequest.parse(form);
    const accept = async () => await acceptInvitation(api, request, body);
    await recordedForm(api, { action: 'acceptInvitation', request, body }, accept);
    response.redirect(303, '/login');
  });
  mountCliLoginPages(app, api);
}

function mountCliLoginPages(app: Express, api: Api): void {
  app.get('/cli-login/:token', async (request, response) => {
    const { token } = request.params;
    const user = await sessionUser(api, request);
    if (user === undefined)
      response.redirect(303, `/login?${new URLSearchParams({ next: `/cli-login/${token}` }).toString()}`);
    else
      await answerOrExplain(response, async () =>
        sendPage(response, 200, confirmPage(user, await openCliLogin(api, token))),
      );
  });
  const confirmIn = async ({ request, response }: FormRequest) => {
    assertOwnPage(request, api.urls.api);
    const session = await sessionPermissions(api, request);
    if (!session) throw new ApiError('Unauthorized', 'You are not logged in any more, open the link again');
    const confirm = async () => await confirmCliLogin(api, String(request.params['token']), session);
    const code = await recordedForm(api, { action: 'confirmCliLogin', request, session }, confirm);
    sendPage(response, 200, codePage(code));
  };
  app.post('/cli-login/:token', formHandler(api, confirmIn));
}

interface FormRequest {
  readonly request: Request;
  readonly response: Response;
  readonly form: Readonly<Record<string, string>>;
}

type Handle = (formRequest: FormRequest) => Promise<void>;

function formHandler(api: Api, handle: Handle): RequestHandler {
  return async (request, response) => {
    await answerOrExplain(response, async () => {
      assertSameOrigin(request, api.urls.api);
      const limits = { maxBytes: maxFormBytes, account: networkShare(api, request) };
      const form = await api.bodies.read(request, { ...limits, type: 'form' });
      await handle({ request, response, form: form as Record<string, string> });
    });
  };
}

interface RecordedForm extends Pick<AuditedCall, 'request'>, Partial<Pick<AuditedCall, 'body' | 'parameters'>> {
  /** The endpoint that does the same, if there is one. */
  readonly action: string;
  /** Absent: the form itself proves who the user is. */
  readonly session?: Permissions;
}

/** Does the work of a form, and records it like the request to an endpoint. */
async function recordedForm<Result>(
  api: Api,
  { action, request, session, parameters = {}, body = {} }: RecordedForm,
  handle: () => Promise<Result>,
): Promise<Result> {
  const caller: Caller = session ? { access: 'login', permissions: session } : anonymous;
  return await recordedAfterwards(api, { action, call: { parameters, body, caller, request }, status: 200, handle });
}

/** Shows a page for a problem that the user can solve. Rethrows other errors. */
async function answerOrExplain(response: Response, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const problem = problemOf(error);
    if (!problem) throw error;
    setRetryAfter(response, problem.status, error);
    sendPage(response, problem.status, problemPage(problem.message));
  }
}

function problemOf(error: unknown): { status: number; message: string } | undefined {
  if (!(error instanceof ApiError || error instanceof BodyError || error instanceof ZodError)) return undefined;
  const { code, message } = explain(error);
  return { status: serviceErrors[code].status, message };
}

function nextOf(value: unknown): string | undefined {
  return typeof value === 'string' && nextPattern.test(value) ? value : undefined;
}

function pick(form: Readonly<Record<string, string>>, names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, form[name]]));
}

const emailField = `<label>E-mail address <input name="user_email" type="email" autocomplete="username" required autofocus></label>`;

function passwordField(label: string, autocomplete: string, rule = ''): string {
  return `<label>${label} <input name="password" type="password" autocomplete="${autocomplete}"${rule} required></label>`;
}

function logInPage(next: string | undefined): string {
  const hidden = next === undefined ? '' : `<input type="hidden" name="next" value="${escapeHtml(next)}">`;
  return formPage('Log in', '/login', [emailField, passwordField('Password', 'current-password'), hidden]);
}

function setUpPage(): string {
  const code = `<label>Set-up code, which Berth has written to the file <code>setup-code</code> of its data folder <input name="code" autocomplete="off" required></label>`;
  return formPage('Create the first administrator', '/setup', [code, emailField, newPasswordField]);
}

const newPasswordField = passwordField(
  `New password, ${minPasswordLength} characters or more`,
  'new-password',
  ` minlength="${minPasswordLength}"`,
);

function invitationPage(): string {
  const code = `<label>Code, the last part of the link <input name="code" autocomplete="off" required></label>`;
  return formPage('Set your password', '/invitation', [emailField, code, newPasswordField], fillScript);
}

/**
 * The link contains both after its `#`, so that no server logs them. Without scripts, the user types them. A page without them, such as
 * one to which the user returns, keeps what the browser has filled in.
 */
const fillScript = `
const given = new URLSearchParams(location.hash.slice(1));
if (given.has('email')) document.forms[0].user_email.value = given.get('email');
if (given.has('code')) document.forms[0].code.value = given.get('code');
history.replaceState(null, '', location.pathname);
`;

function confirmPage(user: string, { program, address }: { program: string; address: string }): string {
  const question = `<p>A command line wants to act for <strong>${escapeHtml(user)}</strong>. It was started as
<code>${escapeHtml(program)}</code> from ${escapeHtml(address)}. Continue only if you have just started it yourself.</p>`;
  return formPage('Log in a command line', '', [question], undefined, 'Show the code');
}

function codePage(code: string): string {
  return page(
    'Log in a command line',
    `<p>Type this code into the command line:</p>\n<p class="code">${code}</p>
<p>Type it nowhere else: a program that has it can act for you.</p>`,
  );
}

function loggedInPage(user: string): string {
  return page(
    'Berth',
    `<p>You are logged in as ${escapeHtml(user)}.</p>
<form method="post" action="/logout"><button>Log out</button></form>`,
  );
}

function problemPage(message: string): string {
  return page('This did not work', `<p role="alert">${escapeHtml(message)}</p>`);
}

// oxlint-disable-next-line max-params -- parts of a page, in their order
function formPage(title: string, action: string, fields: readonly string[], script?: string, button = title): string {
  const target = action === '' ? '' : ` action="${action}"`;
  const form = `<form method="post"${target}>\n${fields.join('\n')}\n<button>${escapeHtml(button)}</button>\n</form>`;
  return page(title, form, script);
}

function page(title: string, content: string, script?: string): string {
  return htmlPage({
    title,
    style,
    main: `<h1>${escapeHtml(title)}</h1>\n${content}`,
    ...(script !== undefined && { end: `<script>${script}</script>\n` }),
  });
}

const style = `
:root { color-scheme: light dark; background: Canvas; color: CanvasText; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; }
main { padding: 2rem; width: min(24rem, 100vw - 4rem); overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; }
label, button { display: block; margin-top: 1rem; }
input, button { box-sizing: border-box; width: 100%; padding: .6rem; font: inherit; }
.code { font: 600 2.4rem ui-monospace, monospace; letter-spacing: .2em; text-align: center; }
`;

const headers = pageHeaders(
  [
    "default-src 'none'",
    `script-src ${inlineSource(fillScript)}`,
    `style-src ${inlineSource(style)}`,
    // Also applies to redirects after a form, which lead to our own pages.
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ],
  // With `no-referrer`, browsers would send forms with the origin `null`.
  'same-origin',
);

function sendPage(response: Response, status: number, html: string): void {
  response.writeHead(status, headers).end(html);
}
