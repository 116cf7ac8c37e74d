/** `berth environment`. */
import { Command } from '@commander-js/extra-typings';
import { usageError } from '../errors.ts';
import { withExamples } from '../examples.ts';
import type { Session } from '../session.ts';
import { environmentsTable, useImageCommand } from './service.ts';

export function environmentCommand(session: Session) {
  return new Command('environment')
    .alias('env')
    .summary('spawn defaults of a service')
    .description('Creates, lists and deletes environments: spawn defaults of a service.')
    .addCommand(listCommand(session))
    .addCommand(createCommand(session))
    .addCommand(deleteCommand(session))
    .addCommand(useImageCommand(session));
}

function listCommand(session: Session) {
  return new Command('list')
    .alias('ls')
    .summary('list the environments of a service')
    .description('Lists the environments of a service.')
    .argument('<service>', 'SERVICE or ACCOUNT/SERVICE')
    .action(async (name) => {
      const client = await session.client();
      const environments = await client.environments.list(await session.service(name), { signal: session.signal });
      session.output.data(environments, environmentsTable(environments));
    });
}

function createCommand(session: Session) {
  const command = new Command('create')
    .summary('create an environment')
    .description('Creates an environment of a service.')
    .argument('<environment>', 'SERVICE/ENVIRONMENT or ACCOUNT/SERVICE/ENVIRONMENT')
    .option('-i, --image <image>', 'what new backends run, a tag or a digest (default: latest)')
    .option('-c, --cluster <name>', 'where new backends run (default: the default cluster)')
    .action(async (given, { image, cluster }) => {
      const client = await session.client();
      const { service, environment: name } = await namedEnvironment(session, given);
      const environment = {
        name,
        ...(image !== undefined && { image_tag: image }),
        ...(cluster !== undefined && { cluster }),
      };
      await client.environments.create(service, environment, { signal: session.signal });
      const full = `${service}/${name}`;
      session.output.done({ environment: full }, `Created the environment ${full}`);
    });
  return withExamples(command, 'environment create draw/staging --image v2');
}

function deleteCommand(session: Session) {
  return new Command('delete')
    .summary('delete an environment')
    .description('Deletes an environment of a service. Its backends keep running.')
    .argument('<environment>', 'SERVICE/ENVIRONMENT or ACCOUNT/SERVICE/ENVIRONMENT')
    .option('-y, --yes', 'do not ask')
    .action(async (given, { yes = false }) => {
      const client = await session.client();
      const { service, environment } = await namedEnvironment(session, given);
      const full = `${service}/${environment}`;
      await session.prompts.confirmDeletion({ what: `This deletes the environment ${full}.`, name: environment, yes });
      await client.environments.delete(service, environment, { signal: session.signal });
      session.output.done({ environment: full, deleted: true }, `Deleted the environment ${full}`);
    });
}

async function namedEnvironment(session: Session, given: string) {
  const { service, environment } = await session.serviceAndEnvironment(given);
  if (environment === undefined) throw usageError(`"${given}" names no environment, use SERVICE/ENVIRONMENT`);
  return { service, environment };
}
