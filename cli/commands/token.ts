/** `berth token`. */
import { Command } from '@commander-js/extra-typings';
import type { AccessToken } from '../../client/index.ts';
import { duration, scopes, several } from '../arguments.ts';
import { collect } from '../collect.ts';
import { usageError } from '../errors.ts';
import { withExamples } from '../examples.ts';
import { safeText } from '../output/safe-text.ts';
import { table } from '../output/table.ts';
import { ago } from '../output/time-text.ts';
import type { Session } from '../session.ts';

export function tokenCommand(session: Session) {
  return new Command('token')
    .summary('access tokens of the account')
    .description('Creates, lists and revokes access tokens of the account.')
    .addCommand(createCommand(session))
    .addCommand(listCommand(session))
    .addCommand(revokeCommand(session));
}

const tokenScopes = ['read', 'connect', 'push', 'deploy', 'manage'] as const;

function createCommand(session: Session) {
  const command = new Command('create')
    .summary('create an access token, and print it')
    .description('Creates an access token, and prints it. The token is shown only once.')
    .argument('<name>', 'a name that describes the purpose of the token')
    .option('--scope <scope>', `what it allows: ${tokenScopes.join(', ')}; may be repeated`, scopes(tokenScopes))
    .option('--service <service>', 'the only service that it is valid for, may be repeated', several)
    .option('--expires <duration>', 'how long it is valid, such as 30d (default: until it is revoked)', duration)
    .action(async (name, { scope, service, expires }) => {
      if (!scope) throw usageError('Say what the token allows', `Use --scope with one of ${tokenScopes.join(', ')}`);
      const client = await session.client();
      const wanted = {
        name,
        scopes: scope,
        ...(service && { services: service }),
        ...(expires !== undefined && { expires_in_seconds: expires }),
      };
      const created = await client.tokens.create(await session.account(), wanted, { signal: session.signal });
      session.output.data(created, created.token);
      session.output.message(`Created the token ${safeText(created.id)}. It is shown only once`);
    });
  return withExamples(
    command,
    'token create "CI of draw" --scope push --scope deploy --service draw --expires 90d > token-file',
  );
}

function listCommand(session: Session) {
  return new Command('list')
    .alias('ls')
    .summary('list the access tokens of the account')
    .description('Lists the access tokens of the account, newest first, without their secrets.')
    .action(async () => {
      const client = await session.client();
      const tokens = await collect(client.tokens.list(await session.account(), { signal: session.signal }));
      session.output.data(tokens, tokensTable(tokens));
    });
}

function tokensTable(tokens: readonly AccessToken[]): string {
  return table(
    ['ID', 'NAME', 'TOKEN', 'SCOPES', 'SERVICES', 'LAST USED', 'EXPIRES'],
    tokens.map((each) => [
      each.id,
      each.name,
      `${each.hint}…`,
      each.scopes.join(','),
      each.services?.join(',') ?? 'all',
      ago(each.last_used_at),
      each.revoked_at ? 'revoked' : (each.expires_at ?? 'never'),
    ]),
  );
}

function revokeCommand(session: Session) {
  return new Command('revoke')
    .summary('revoke an access token')
    .description('Revokes an access token. Within a second, all processes refuse it, and its open streams end.')
    .argument('<id>', 'the ID of a token, from "berth token list"')
    .action(async (id) => {
      const client = await session.client();
      await client.tokens.revoke(await session.account(), id, { signal: session.signal });
      session.output.done({ id, revoked: true }, `Revoked the token ${id}`);
    });
}
