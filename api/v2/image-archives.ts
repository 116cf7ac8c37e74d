/** Images as archives, for users without Docker. The registry reads and writes the archives. */
import type { ServerResponse } from 'node:http';
import { endpoints } from '../../contract/endpoints.ts';
import { digestPattern, serviceName } from '../../contract/names.ts';
import { ApiError } from '../../model/api-error.ts';
import { serviceId } from '../../model/service.ts';
import { answer } from '../app.ts';
import { presentImage } from '../present.ts';
import type { Api, ImageArchive, ImageArchives } from '../dependencies.ts';
import { ownService, visibleService } from '../access.ts';

/**
 * A connection on which nothing is sent for this long is dead or an attack, because even checking a large layer takes less. Between
 * requests Node has its own timeout.
 */
const idleMs = 600_000;

export const imageArchiveEndpoints = [
  answer(endpoints.uploadImage, async (api, { parameters, query, caller, request, response, signal }) => {
    request.socket.setTimeout(idleMs);
    try {
      ownService(caller, parameters);
      checkServiceName(parameters.service);
      const repository = serviceId(parameters.account, parameters.service);
      const image = await archivesOf(api).receive({
        repository,
        by: parameters.account,
        request,
        response,
        selector: query,
        signal,
      });
      response.setHeader('location', `${api.urls.api}/v2/service/${repository}/images/${image.digest}/archive`);
      return presentImage(image);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }),
  answer(endpoints.imageArchive, async (api, { parameters, caller, request, response, signal }) => {
    const { id: repository } = await visibleService(api.store, caller, parameters);
    const { digest } = parameters;
    const archive = digestPattern.test(digest) ? await archivesOf(api).write(repository, digest) : undefined;
    if (!archive) throw new ApiError('ImageNotFound', `Service "${repository}" has no image "${digest}"`);
    signal.throwIfAborted();
    response.writeHead(200, {
      'content-type': 'application/x-tar',
      'content-length': archive.sizeBytes,
      'content-disposition': `attachment; filename="${archive.fileName}"`,
    });
    if (request.method === 'HEAD') response.end();
    else await send(archive, response, signal);
  }),
];

async function send(archive: ImageArchive, response: ServerResponse, signal: AbortSignal): Promise<void> {
  response.socket?.setTimeout(idleMs);
  signal.addEventListener('abort', () => response.destroy(), { once: true });
  try {
    await archive.copyTo(response);
    response.end();
  } catch (error) {
    // Not an error if the client has disconnected.
    const isDisconnected = response.destroyed || (response.socket?.destroyed ?? true);
    if (!isDisconnected && !signal.aborted) throw error;
  }
}

function archivesOf({ archives }: Api): ImageArchives {
  if (archives) return archives;
  throw new ApiError(
    'ImagesElsewhere',
    'This process has the API without the registry, whose images are files of another process; use docker push and pull, or set BERTH_BLOBS=gridfs',
  );
}

function checkServiceName(name: string): void {
  const { error } = serviceName.safeParse(name);
  if (error) throw new ApiError('BadRequest', `service: ${error.issues[0]?.message ?? 'Not a legal name'}`);
}
