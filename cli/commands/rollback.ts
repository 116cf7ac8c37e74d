/** `berth service rollback`. */
import { Command } from '@commander-js/extra-typings';
import type { Image } from '../../client/index.ts';
import { notFound } from '../errors.ts';
import { withExamples } from '../examples.ts';
import type { Session } from '../session.ts';

export function rollbackCommand(session: Session) {
  const command = new Command('rollback')
    .summary('set the image of new backends to the previously pushed one')
    .description(
      'Sets the image of an environment to the one that was pushed before the current one. Running backends continue; "berth service stop-all" stops them.',
    )
    .argument('<service>', 'SERVICE, SERVICE/ENVIRONMENT or ACCOUNT/SERVICE/ENVIRONMENT')
    .action(async (name) => await rollBack(session, name));
  return withExamples(command, 'service rollback draw', 'service rollback draw/staging');
}

async function rollBack(session: Session, name: string): Promise<void> {
  const { signal, output } = session;
  const { service, environment: environmentName = 'default' } = await session.serviceAndEnvironment(name);
  const client = await session.client();
  const { environments } = await client.service(service, { signal });
  const environment = environments.find((each) => each.name === environmentName);
  if (!environment) {
    const message = `The service ${service} has no environment "${environmentName}"`;
    throw notFound('EnvironmentNotFound', message);
  }
  const { from, to } = await step(client.images(service, { signal, pageSize: 100 }), environment.image_tag);
  if (!from || !to) {
    const message = `The service ${service} has no image that was pushed before ${environment.image_tag}`;
    throw notFound('NoEarlierImage', message, '"berth image list" shows its images');
  }
  await client.setImage(service, to.digest, { environment: environmentName, signal });
  output.done(
    { service, environment: environmentName, from: from.digest, to: to.digest },
    `New backends of ${service}/${environmentName} run ${to.digest}, pushed ${to.upload_time}, instead of ${from.digest}`,
  );
}

/**
 * The image that an environment runs, and the image that was pushed before it. If the environment names a tag, the current image is the
 * newest one with this tag, and only earlier images with the same tag count.
 */
async function step(images: AsyncIterable<Image>, current: string): Promise<{ from?: Image; to?: Image }> {
  let from: Image | undefined;
  for await (const image of images) {
    if (!from) {
      if (image.digest === current || image.tag === current) from = image;
    } else if (image.digest !== from.digest && (from.digest === current || image.tag === from.tag))
      return { from, to: image };
  }
  return from ? { from } : {};
}
