/** All routes of the registry, each with its handler and the right that it requires. */
import { listCatalog, listTags } from './name-lists.ts';
import { deleteManifest, putManifest, readManifest } from './manifests.ts';
import { listReferrers } from './referrers.ts';
import { appendChunk, cancelUpload, finishUpload, startUpload, uploadStatus } from './uploads.ts';
import { deleteBlob, getBlob, headBlob } from './blobs.ts';
import { tokenGet, tokenPost } from './token.ts';
import { sendJson } from '../../core/http/json.ts';
import type { RequestContext, AuthorizedRequest, RegistryContext, RepositoryAction, Right } from '../context.ts';
import { routeFinder } from './request-target.ts';
import type { ParametersIn } from './request-target.ts';

const token = '/token';
const base = '/v2/';
const catalog = '/v2/_catalog';
const uploads = '/v2/<repository>/blobs/uploads/';
const upload = '/v2/<repository>/blobs/uploads/<uploadId>';
const blob = '/v2/<repository>/blobs/<digest>';
const manifest = '/v2/<repository>/manifests/<reference>';
const tags = '/v2/<repository>/tags/list';
const referrers = '/v2/<repository>/referrers/<digest>';

interface Row<Path extends string> {
  /** Its name in logs and metrics. */
  readonly name: string;
  readonly method: string;
  readonly path: Path;
  /** The action of a route that transfers content: the transfer ends when its caller loses the right to it. */
  readonly transfer?: RepositoryAction;
}

/** A route whose handler identifies the caller. */
interface OpenRoute extends Row<typeof token> {
  readonly right: 'none';
  readonly handle: (context: RegistryContext, incoming: RequestContext) => Promise<void>;
}

/** A route whose handler receives only requests of callers with the right, and the parameters of its path. */
interface GrantedRoute<Path extends string> extends Row<Path> {
  readonly right: Right;
  readonly handle: (context: RegistryContext, incoming: AuthorizedRequest<ParametersIn<Path>>) => Promise<void> | void;
}

export type Route =
  | OpenRoute
  | GrantedRoute<typeof base>
  | GrantedRoute<typeof catalog>
  | GrantedRoute<typeof uploads>
  | GrantedRoute<typeof upload>
  | GrantedRoute<typeof blob>
  | GrantedRoute<typeof manifest>
  | GrantedRoute<typeof tags>
  | GrantedRoute<typeof referrers>;

/**
 * The first path that matches is used. Of several rights, one is enough, and challenges name the first.
 *
 * - HEAD of content requires `pull` or `push`: clients that push check what exists.
 * - Cancelling an upload does not require `delete`: clients do it with the grant that they pushed with.
 * - Deleting a manifest requires `delete` or `push`: a caller that may push may move a tag too.
 */
const routes: readonly Route[] = [
  { name: 'token-get', method: 'GET', path: token, right: 'none', handle: tokenGet },
  { name: 'token-post', method: 'POST', path: token, right: 'none', handle: tokenPost },
  { name: 'ping', method: 'GET', path: base, right: 'any', handle: ping },
  { name: 'ping', method: 'HEAD', path: base, right: 'any', handle: ping },
  { name: 'catalog', method: 'GET', path: catalog, right: 'catalog', handle: listCatalog },
  { name: 'upload-start', method: 'POST', path: uploads, right: ['push'], transfer: 'push', handle: startUpload },
  { name: 'upload-append', method: 'PATCH', path: upload, right: ['push'], transfer: 'push', handle: appendChunk },
  { name: 'upload-finish', method: 'PUT', path: upload, right: ['push'], transfer: 'push', handle: finishUpload },
  { name: 'upload-status', method: 'GET', path: upload, right: ['push'], handle: uploadStatus },
  { name: 'upload-cancel', method: 'DELETE', path: upload, right: ['push'], handle: cancelUpload },
  { name: 'blob-get', method: 'GET', path: blob, right: ['pull'], transfer: 'pull', handle: getBlob },
  { name: 'blob-head', method: 'HEAD', path: blob, right: ['pull', 'push'], handle: headBlob },
  { name: 'blob-delete', method: 'DELETE', path: blob, right: ['delete'], handle: deleteBlob },
  { name: 'manifest-get', method: 'GET', path: manifest, right: ['pull'], handle: readManifest },
  { name: 'manifest-head', method: 'HEAD', path: manifest, right: ['pull', 'push'], handle: readManifest },
  { name: 'manifest-delete', method: 'DELETE', path: manifest, right: ['delete', 'push'], handle: deleteManifest },
  { name: 'manifest-put', method: 'PUT', path: manifest, right: ['push'], transfer: 'push', handle: putManifest },
  { name: 'tags-list', method: 'GET', path: tags, right: ['pull'], handle: listTags },
  { name: 'referrers-list', method: 'GET', path: referrers, right: ['pull'], handle: listReferrers },
];

/** Finds the route of a request by its method and target. Throws a `RegistryError` if there is none. */
export const findRoute = routeFinder(routes);

function ping(_context: RegistryContext, { response }: AuthorizedRequest): void {
  sendJson(response, 200, {});
}
