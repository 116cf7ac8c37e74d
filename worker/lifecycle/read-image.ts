import { imageReference } from '../images/pulls.ts';
import type { WorkerContext } from '../context.ts';
import type { ImageConfig } from '../docker/image-config.ts';
import { signalNumber } from '../leases/stop-signal.ts';
import { StartFailure } from './pull-image.ts';
import type { Run } from './run.ts';

/** Reads the configuration of a run's image, and passes it to the run. Throws `no-image` and `StartFailure`. */
export async function readImage({ engine, settings }: WorkerContext, run: Run): Promise<ImageConfig> {
  const image = await engine.images.configOf(imageReference(settings.registryHost, run.backend));
  if (run.backend.readiness?.type === 'healthcheck' && !image.healthcheck) {
    throw new StartFailure("The image has no HEALTHCHECK, and the service's readiness is `healthcheck`");
  }
  if (image.command.length === 0) {
    throw new StartFailure('The image names no program to run: add CMD or ENTRYPOINT to its Dockerfile');
  }
  run.useImage(image);
  await run.containerLease?.useStopSignal(signalNumber(image.stopSignal));
  return image;
}
