/** Log-ins of command lines through a browser, as existing command lines expect them. */
import { endpoints } from '../../contract/endpoints.ts';
import { cliLoginConfirmed } from '../../contract/messages.ts';
import { scopes } from '../../contract/scopes.ts';
import { ChangeListeners } from '../../core/async/change-listeners.ts';
import type { Bus } from '../../core/bus/bus.ts';
import type { Clock } from '../../core/clock/clock.ts';
import { clientAddress, networkOf } from '../../core/http/client-address.ts';
import { accessTokenDocument, accessTokens, newSecret, publicTokenId } from '../../model/access-token.ts';
import { ApiError } from '../../model/api-error.ts';
import { countAttempts } from '../../model/attempts.ts';
import type { AttemptLimit } from '../../model/attempts.ts';
import {
  cliLoginId,
  cliLogins,
  complete,
  confirm,
  isOpen,
  newCliLogin,
  newCliLoginCode,
  newCliLoginToken,
  noCliLogin,
} from '../../model/cli-login.ts';
import type { CliLogin } from '../../model/cli-login.ts';
import { isOpenLogIn } from '../../model/permissions.ts';
import type { Permissions } from '../../model/permissions.ts';
import { users } from '../../model/user.ts';
import { answer } from '../app.ts';
import type { Api } from '../dependencies.ts';

/** Log-ins that clients of one network may begin without a token: each is a document that stays for ten minutes. */
const beginLimit: AttemptLimit = { capacity: 60, seconds: 600 };

/** The bus may lose the message that a log-in was confirmed. */
const pollEveryMs = 2_000;

/** Three months: a person who uses the command line now and then logs in a few times a year. */
const cliTokenMs = 90 * 24 * 60 * 60 * 1000;

/** Enough of a `User-Agent` header to recognize the program. */
const maxProgramLength = 100;

/** Wakes the streams that wait for a log-in to be confirmed. */
export type CliLoginWatch = ChangeListeners;

export async function openCliLoginWatch(
  { bus, clock }: { bus: Bus; clock: Clock },
  opening: AsyncDisposableStack,
): Promise<CliLoginWatch> {
  const listeners = new ChangeListeners(clock);
  opening.use(await bus.subscribe(cliLoginConfirmed, ({ login }) => listeners.notify(login)));
  return listeners;
}

export const cliLoginEndpoints = [
  answer(endpoints.beginCliLogin, async (api, { request }) => {
    const now = await api.store.now();
    const address = clientAddress(request, api.behindLoadBalancer);
    const begun = { id: `cli-login ${networkOf(address)}`, limit: beginLimit };
    const retryAfterSeconds = await countAttempts(api.store, [begun], now);
    if (retryAfterSeconds > 0)
      throw new ApiError('TooManyRequests', 'Too many log-ins were begun', { retryAfterSeconds });
    const token = newCliLoginToken();
    const id = cliLoginId(token) ?? '';
    const program = (request.headers['user-agent'] ?? 'unknown program').slice(0, maxProgramLength);
    await api.store.insert(cliLogins, newCliLogin(id, { program, address }, now));
    return { token };
  }),
  answer(endpoints.cliLoginStatus, async (api, { parameters, response, signal }) => {
    const { id } = await openCliLogin(api, parameters.token);
    using change = api.cliLogins.listen(id);
    using stream = api.eventStreams.open(response);
    for (;;) {
      const [login, now] = [await api.store.get(cliLogins, id), await api.store.now()];
      const isWaiting = login !== undefined && isOpen(login, now);
      if (!isWaiting || login.confirmed || signal.aborted) {
        if (!signal.aborted) stream.send(0, JSON.stringify({ status: isWaiting ? 'ok' : 'expired' }));
        stream.end();
        return;
      }
      await change.next(pollEveryMs, signal).catch(() => {});
    }
  }),
  answer(endpoints.completeCliLogin, async (api, { parameters, body }) => {
    const { id } = await openCliLogin(api, parameters.token);
    const now = await api.store.now();
    const login = await api.store.update(cliLogins, id, (current) => complete(current, body.code, now));
    if (!login?.isComplete || !login.confirmed) {
      throw new ApiError('Forbidden', 'The code is wrong, type the one that the page in the browser shows');
    }
    return await cliSession(api, login, now);
  }),
];

/** A log-in that waits to be confirmed or completed. Throws `CliLoginNotFound`. */
export async function openCliLogin(api: Api, token: string): Promise<CliLogin> {
  const id = cliLoginId(token);
  const login = id === undefined ? undefined : await api.store.get(cliLogins, id);
  if (!login || !isOpen(login, await api.store.now())) throw noCliLogin();
  return login;
}

/** Confirms a log-in in a session. Returns the code that the person types into the command line. Throws `CliLoginNotFound`. */
export async function confirmCliLogin(api: Api, token: string, session: Permissions): Promise<string> {
  const { id } = await openCliLogin(api, token);
  const { user = '' } = session;
  const { passwordSetAt } = (await api.store.get(accessTokens, session.token)) ?? {};
  const by = { user, ...(passwordSetAt && { passwordSetAt }) };
  const now = await api.store.now();
  const code = newCliLoginCode();
  await api.store.update(cliLogins, id, (current) => confirm(current, by, code, now));
  await api.bus.publish(cliLoginConfirmed, { login: id });
  return code;
}

/** Creates the token of a completed log-in. Throws `CliLoginNotFound` if the user has a new password since, or is disabled. */
async function cliSession(api: Api, { program, confirmed }: CliLogin, now: Date) {
  const { user = '', passwordSetAt } = confirmed ?? {};
  const known = await api.store.get(users, user);
  const secret = newSecret('cli');
  const expiresAt = new Date(now.getTime() + cliTokenMs);
  const details = {
    kind: 'cli',
    user,
    name: program,
    scopes,
    expiresAt,
    ...(passwordSetAt && { passwordSetAt }),
  } as const;
  const document = accessTokenDocument(secret, details, now);
  if (!known || known.disabledAt || !isOpenLogIn(document, known, now)) throw noCliLogin();
  await api.store.insert(accessTokens, document);
  return {
    uuid: publicTokenId(document),
    user_id: user,
    token: secret,
    user_email: user,
    user_is_admin: known.isAdmin,
  };
}
