/** Ends transfers of content whose caller loses its right: the token was revoked or has expired, or its user has lost the role. */
import type { IncomingMessage } from 'node:http';
import { permissionIn } from '../../model/permissions.ts';
import type { TokenWatch } from '../../model/token-checks.ts';
import type { Caller, RegistryContext, RepositoryAction } from '../context.ts';
import { loginMay, unauthorized } from './caller.ts';

/** Watches the right of a caller to an action in a repository, until disposed. `undefined` for a caller without an access token. */
export function watchRight(
  context: RegistryContext,
  request: IncomingMessage,
  { caller, repository, action }: { caller: Caller; repository: string; action: RepositoryAction },
): TokenWatch | undefined {
  const { subject, permissions } = caller;
  if (!permissions) return undefined;
  return context.tokens.watch(permissions, {
    reason: () => unauthorized(context, request, {}, caller),
    allows: (now) => {
      const permission = permissionIn(now, subject);
      // Pulls are not checked again: the repository may be public.
      return permission !== undefined && (action === 'pull' || loginMay(permission, repository, action));
    },
  });
}
