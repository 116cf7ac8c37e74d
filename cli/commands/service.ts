/** `berth service`. */
import { Command } from '@commander-js/extra-typings';
import type { Service } from '../../client/index.ts';
import { collect } from '../collect.ts';
import { usageError } from '../errors.ts';
import { withExamples } from '../examples.ts';
import { safeText } from '../output/safe-text.ts';
import { fields, table } from '../output/table.ts';
import { ago } from '../output/time-text.ts';
import type { Session } from '../session.ts';
import { connectCommand } from './connect.ts';
import { imagesCommand } from './image.ts';
import { rollbackCommand } from './rollback.ts';
import { settingsCommand } from './settings.ts';
import { spawnCommand } from './spawn.ts';
import { stopAllCommand } from './stop-all.ts';

export function serviceCommand(session: Session) {
  return (
    new Command('service')
      .summary('create, change and delete services')
      .description('Creates, deletes and changes services.')
      .addCommand(createCommand(session))
      .addCommand(listCommand(session))
      .addCommand(infoCommand(session))
      .addCommand(deleteCommand(session))
      .addCommand(settingsCommand(session))
      .addCommand(useImageCommand(session))
      .addCommand(rollbackCommand(session))
      .addCommand(stopAllCommand(session))
      // For compatibility with existing tools.
      .addCommand(connectCommand(session), { hidden: true })
      .addCommand(spawnCommand(session), { hidden: true })
      .addCommand(imagesCommand(session), { hidden: true })
  );
}

function createCommand(session: Session) {
  return new Command('create')
    .summary('create a service')
    .description('Creates a service, with the environment "default".')
    .argument('<service>', 'SERVICE or ACCOUNT/SERVICE')
    .action(async (name) => {
      const client = await session.client();
      const service = await session.service(name);
      await client.createService(service, { signal: session.signal });
      session.output.done({ service }, `Created the service ${service}`);
    });
}

function listCommand(session: Session) {
  return new Command('list')
    .alias('ls')
    .summary('list the services of the account')
    .description('Lists the names of the services of the account.')
    .action(async () => {
      const client = await session.client();
      const names = await collect(client.services(await session.account(), { signal: session.signal }));
      session.output.data(names, names.map(safeText).join('\n'));
    });
}

function infoCommand(session: Session) {
  return new Command('info')
    .summary('show a service and its environments')
    .description('Shows a service and its environments.')
    .argument('<service>', 'SERVICE or ACCOUNT/SERVICE')
    .action(async (name) => {
      const client = await session.client();
      const service = await client.service(await session.service(name), { signal: session.signal });
      session.output.data(service, serviceText(service));
    });
}

function serviceText(service: Service): string {
  const about = fields({
    service: `${service.account_name}/${service.name}`,
    image: service.image_name,
    'last push': service.last_image_upload_time ?? 'never',
    'last digest': service.last_image_digest,
    'last spawned': service.last_spawned_at ?? 'never',
    created: service.created_at,
  });
  return `${about}\n\n${environmentsTable(service.environments)}`;
}

export function environmentsTable(environments: Service['environments']): string {
  return table(
    ['ENVIRONMENT', 'IMAGE', 'CLUSTER', 'LAST SPAWNED'],
    environments.map((each) => [each.name, each.image_tag, each.cluster, ago(each.last_spawned_at)]),
  );
}

function deleteCommand(session: Session) {
  const command = new Command('delete')
    .summary('delete a service with its images')
    .description('Deletes a service: stops its backends and deletes its images.')
    .argument('<service>', 'SERVICE or ACCOUNT/SERVICE')
    .option('-y, --yes', 'do not ask')
    .action(async (given, { yes = false }) => {
      const client = await session.client();
      const service = await session.service(given);
      const name = service.slice(service.indexOf('/') + 1);
      // Fails before the confirmation if the service does not exist.
      await client.service(service, { signal: session.signal });
      const what = `This deletes the service ${service}, stops its backends and deletes its images.`;
      await session.prompts.confirmDeletion({ what, name, yes });
      await client.deleteService(service, { signal: session.signal });
      session.output.done({ service, deleted: true }, `Deleted the service ${service}`);
    });
  return withExamples(command, 'service delete draw', 'service delete draw --yes');
}

/** `--image` is for compatibility with existing tools. */
export function useImageCommand(session: Session) {
  const command = new Command('use-image')
    .summary('set the image that new backends run')
    .description('Sets the image that new backends of an environment run: a tag or a digest.')
    .argument('<service>', 'SERVICE, SERVICE/ENVIRONMENT or ACCOUNT/SERVICE/ENVIRONMENT')
    .argument('[image]', 'a tag or a digest')
    .option('-i, --image <image>', 'the same as the argument')
    .action(async (name, argument, { image = argument }) => {
      if (image === undefined) throw usageError('Name an image: a tag or a digest');
      if (argument !== undefined && argument !== image)
        throw usageError('Name the image once, as argument or with --image');
      const client = await session.client();
      const { service, environment = 'default' } = await session.serviceAndEnvironment(name);
      await client.setImage(service, image, { environment, signal: session.signal });
      session.output.done({ service, environment, image }, `New backends of ${service}/${environment} run ${image}`);
    });
  return withExamples(command, 'service use-image draw v2', 'service use-image draw/staging sha256:4f5a…');
}
