import { answerJson } from './answer.ts';
import { deleteBlob, getBlob, headBlob } from './blobs/blob-read.ts';
import { appendChunk, finishUpload, startUpload } from './blobs/blob-push.ts';
import { authorize } from './access/caller.ts';
import { listCatalog } from './manifests/catalog.ts';
import type { Exchange, GrantedExchange, RegistryContext } from './context.ts';
import { deleteManifest } from './manifests/manifest-delete.ts';
import { putManifest } from './manifests/manifest-push.ts';
import { readManifest } from './manifests/manifest-read.ts';
import { listReferrers } from './manifests/referrers.ts';
import type { GrantedOperation, Operation } from './routes.ts';
import { listTags } from './manifests/tags.ts';
import { tokenGet, tokenPost } from './access/token.ts';
import { cancelUpload, uploadStatus } from './blobs/upload-session.ts';

/** Does one operation, for those who may, and answers it. Throws what it is refused with. */
export async function perform(context: RegistryContext, exchange: Exchange, operation: Operation): Promise<void> {
  if (operation.name === 'token-get' || operation.name === 'token-post') context.rates.admit(exchange.request);
  if (operation.name === 'token-get') return await tokenGet(context, exchange);
  if (operation.name === 'token-post') return await tokenPost(context, exchange);
  const caller = await authorize(context, exchange, operation);
  exchange.facts.subject = caller.subject;
  return await performGranted(context, { ...exchange, caller }, operation);
}

async function performGranted(
  context: RegistryContext,
  exchange: GrantedExchange,
  operation: GrantedOperation,
): Promise<void> {
  switch (operation.name) {
    case 'ping':
      return answerJson(exchange.response, 200, {});
    case 'catalog':
      return await listCatalog(context, exchange);
    case 'blob-get':
      return await getBlob(context, exchange, operation);
    case 'blob-head':
      return await headBlob(context, exchange, operation);
    case 'blob-delete':
      return await deleteBlob(context, exchange, operation);
    case 'upload-start':
      return await startUpload(context, exchange, operation);
    case 'upload-append':
      return await appendChunk(context, exchange, operation);
    case 'upload-finish':
      return await finishUpload(context, exchange, operation);
    case 'upload-status':
      return await uploadStatus(context, exchange, operation);
    case 'upload-cancel':
      return await cancelUpload(context, exchange, operation);
    case 'manifest-get':
    case 'manifest-head':
      return await readManifest(context, exchange, operation);
    case 'manifest-put':
      return await putManifest(context, exchange, operation);
    case 'manifest-delete':
      return await deleteManifest(context, exchange, operation);
    case 'tags-list':
      return await listTags(context, exchange, operation);
    case 'referrers-list':
      return await listReferrers(context, exchange, operation);
  }
}
