/** Passwords: set-up, invitations, and the log-ins of browsers. */
import type { IncomingMessage } from 'node:http';
import { endpoints } from '../../contract/endpoints.ts';
import { publicTokenId } from '../../model/access-token.ts';
import { ApiError } from '../../model/api-error.ts';
import { setUp } from '../../model/setup.ts';
import { isInvited, userId, users } from '../../model/user.ts';
import { answer } from '../app.ts';
import type { Api } from '../dependencies.ts';
import { beginSession, checkPassword, setPassword } from './log-in.ts';
import type { Session } from './log-in.ts';
import { limitedByNetwork } from './log-in-limits.ts';

export const sessionEndpoints = [
  answer(endpoints.setUp, async (api, { body, request }) => await setUpWith(api, request, body)),
  answer(endpoints.acceptInvitation, async (api, { body, request }) => await acceptInvitation(api, request, body)),
  answer(endpoints.logIn, async (api, { body, request, response }) => {
    const user = await checkPassword(api, request, { email: body.user_email, password: body.password });
    const session = await beginSession(api, request, user);
    response.setHeader('set-cookie', session.cookies);
    return presentSession(session);
  }),
  answer(endpoints.changePassword, async (api, { body, caller, request }) => {
    const { user = '' } = caller.permissions;
    const { passwordHash } = await checkPassword(api, request, { email: user, password: body.current_password });
    await setPassword(api, user, body.new_password, (current) => {
      if (current.passwordHash !== passwordHash)
        throw new ApiError('Unauthorized', 'The password has just been changed');
    });
  }),
];

interface SetUp {
  readonly code: string;
  readonly user_email: string;
  readonly password: string;
}

/** Creates the first administrator. Throws `Forbidden` and `TooManyRequests`. */
export async function setUpWith(api: Api, request: IncomingMessage, given: SetUp): Promise<void> {
  const { code, user_email: email, password } = given;
  await limitedByNetwork(api, request, 'set-up', async () => {
    await setUp(api.store, code, { email, passwordHash: await api.passwords.hash(password) });
  });
  await api.tokens.publishChange();
}

/** Sets the password of a user who was invited to do so. Throws `Forbidden` and `TooManyRequests`. */
export async function acceptInvitation(api: Api, request: IncomingMessage, given: SetUp): Promise<void> {
  const wrong = () =>
    new ApiError('Forbidden', 'This invitation was used or has expired, ask an administrator for another');
  const id = userId(given.user_email);
  await limitedByNetwork(api, request, `invitation ${id}`, async () => {
    if (!(await api.store.get(users, id))) throw wrong();
    await setPassword(api, id, given.password, (user, now) => {
      if (!isInvited(user, given.code, now)) throw wrong();
    });
  });
}

function presentSession({ user, token, permissions }: Session) {
  return {
    uuid: publicTokenId(token),
    user_email: user.id,
    user_is_admin: user.isAdmin,
    accounts: permissions.accounts.map(({ account }) => account),
    expires_at: token.expiresAt?.toISOString(),
  };
}
