/** `berth admin trust`. */
import { Command } from '@commander-js/extra-typings';
import { duration, scopes, several } from '../../arguments.ts';
import { collect } from '../../collect.ts';
import { withExamples } from '../../examples.ts';
import { table } from '../../output/table.ts';
import type { Session } from '../../session.ts';

export function trustCommand(session: Session) {
  return new Command('trust')
    .description('Lets deployments of a repository deploy without a stored token.')
    .addCommand(createCommand(session))
    .addCommand(listCommand(session))
    .addCommand(deleteCommand(session));
}

/** Deployments need no access to settings and tokens. */
const trustScopes = ['read', 'connect', 'push', 'deploy'] as const;

function createCommand(session: Session) {
  const command = new Command('create')
    .summary('trust a repository')
    .description(
      'Allows deployments of a repository to exchange their ID token for a short-lived deploy token of the account.',
    )
    .argument('<repository>', 'OWNER/NAME at GitHub, or at the issuer')
    .option('--branch <name>', 'the only branch (default: every branch and tag)')
    .option('--environment <name>', 'the only environment of the deployment (default: any or none)')
    .option('--service <service>', 'the only service, may be repeated (default: all)', several)
    .option(
      '--scope <scope>',
      `what a deploy token allows: ${trustScopes.join(', ')}; may be repeated (default: push and deploy)`,
      scopes(trustScopes),
    )
    .option('--lifetime <duration>', 'how long a deploy token is valid (default: 15m)', duration)
    .option('--issuer <url>', "the issuer of ID tokens (default: GitHub's)")
    .action(async (repository, { branch, environment, service, scope, lifetime, issuer }) => {
      const client = await session.client();
      const wanted = {
        repository,
        ...(branch !== undefined && { branch }),
        ...(environment !== undefined && { environment }),
        ...(service && { services: service }),
        ...(scope && { scopes: scope }),
        ...(lifetime !== undefined && { lifetime_seconds: lifetime }),
        ...(issuer !== undefined && { issuer }),
      };
      const rule = await client.trustRules.create(await session.account(), wanted, { signal: session.signal });
      session.output.done(rule, `Created the trust rule ${rule.id}`);
    });
  return withExamples(
    command,
    'admin trust create acme/draw --branch main --service draw',
    'admin trust create acme/draw --scope push,deploy,connect,read',
  );
}

function listCommand(session: Session) {
  return new Command('list')
    .alias('ls')
    .summary('list the trust rules of the account')
    .description('Lists the trust rules of the account, newest first.')
    .action(async () => {
      const client = await session.client();
      const rules = await collect(client.trustRules.list(await session.account(), { signal: session.signal }));
      const rows = rules.map((each) => [
        each.id,
        each.repository,
        each.branch ?? 'any',
        each.environment ?? 'any',
        each.services?.join(',') ?? 'all',
        each.scopes.join(','),
      ]);
      session.output.data(rules, table(['ID', 'REPOSITORY', 'BRANCH', 'ENVIRONMENT', 'SERVICES', 'SCOPES'], rows));
    });
}

function deleteCommand(session: Session) {
  return new Command('delete')
    .alias('rm')
    .summary('delete a trust rule')
    .description('Deletes a trust rule. Deploy tokens that were issued for it stay valid until they expire.')
    .argument('<id>', 'the ID of a rule, from "berth admin trust list"')
    .action(async (id) => {
      const client = await session.client();
      await client.trustRules.delete(await session.account(), id, { signal: session.signal });
      session.output.done({ id, deleted: true }, `Deleted the trust rule ${id}`);
    });
}
