/** Answers lists of names: the tags of a repository, and the repositories of an account. */
import type { Store } from '../../core/store/store.ts';
import { findService, serviceId, services } from '../../model/service.ts';
import { tags } from '../content/documents.ts';
import { requireRepository } from '../content/repositories.ts';
import type { AuthorizedRequest, RegistryContext } from '../context.ts';
import { RegistryError } from '../errors.ts';
import { sendJson } from '../../core/http/json.ts';
import { singleParameter } from './request-target.ts';

/** The largest page that a client can request: 10,000 tags are a megabyte or two. */
const maxPage = 10_000;

/** `GET …/tags/list`: a repository's tags in byte order, in pages. */
export async function listTags(
  { store }: RegistryContext,
  { response, query, parameters }: AuthorizedRequest<{ readonly repository: string }>,
): Promise<void> {
  const { repository } = parameters;
  const limit = pageSize(query);
  const last = singleParameter(query, 'last');
  await requireRepository(store, repository);
  const { page, link } = await readPage(`/v2/${repository}/tags/list`, limit, async (count) => {
    const range = last !== undefined && { range: { after: last } };
    const found = await store.find(tags, { index: 'byRepository', equals: { repository }, limit: count, ...range });
    return found.map(({ tag }) => tag);
  });
  sendJson(response, 200, { name: repository, tags: page }, link);
}

/**
 * `GET /v2/_catalog`: the repositories of the caller's account that it may see, in byte order, in pages. Public repositories of other
 * accounts are not listed: there may be any number of them.
 */
export async function listCatalog(
  { store }: RegistryContext,
  { response, query, caller }: AuthorizedRequest,
): Promise<void> {
  const account = caller.subject;
  const limit = pageSize(query);
  const after = nameAfter(singleParameter(query, 'last'), `${account}/`);
  const { page, link } = await readPage('/v2/_catalog', limit, async (count) => {
    if (after === 'the end') return [];
    if (caller.services) {
      const names = caller.services.filter((name) => after === 'the beginning' || name > after.name);
      return await existing(store, account, names, count);
    }
    const range = after !== 'the beginning' && { range: { after: after.name } };
    const names: string[] = [];
    const ofAccount = { index: 'byAccount', equals: { account }, ...range, batchSize: count } as const;
    for await (const { id, deletedAt } of store.scan(services, ofAccount)) {
      if (!deletedAt) names.push(id);
      if (names.length === count) break;
    }
    return names;
  });
  sendJson(response, 200, { repositories: page }, link);
}

/** The first existing repositories among some names, in byte order. Names contain only ASCII. */
async function existing(store: Store, account: string, names: readonly string[], count: number): Promise<string[]> {
  const ids = names.toSorted().map((name) => serviceId(account, name));
  const found: string[] = [];
  for (let at = 0; at < ids.length && found.length < count; at += count) {
    const batch = await Promise.all(ids.slice(at, at + count).map(async (id) => await findService(store, id)));
    found.push(...batch.flatMap((service) => service?.id ?? []));
  }
  return found.slice(0, count);
}

/** How many names a page has (`n`). Throws `parameter-invalid`. */
function pageSize(query: URLSearchParams): number {
  const text = singleParameter(query, 'n');
  if (text === undefined) return maxPage;
  if (!/^[0-9]+$/.test(text)) throw new RegistryError('parameter-invalid', { detail: 'n is not a number' });
  return Math.min(Number(text), maxPage);
}

/** A page of names, with a link to the next one if there is one. */
async function readPage(
  path: string,
  limit: number,
  read: (count: number) => Promise<string[]>,
): Promise<{ page: string[]; link: { link?: string } }> {
  // One name more than the page has shows whether there is another page.
  const found = limit === 0 ? [] : await read(limit + 1);
  const page = found.slice(0, limit);
  const isLast = found.length === page.length;
  return { page, link: isLast ? {} : { link: `<${path}?n=${limit}&last=${page.at(-1)}>; rel="next"` } };
}

/** Where a list continues after `last`, which may be any text, in an account whose repositories begin with `prefix`. */
function nameAfter(last: string | undefined, prefix: string): { name: string } | 'the beginning' | 'the end' {
  if (last === undefined) return 'the beginning';
  if (last.startsWith(prefix)) return { name: last.slice(prefix.length) };
  return last < prefix ? 'the beginning' : 'the end';
}
