import type { GrantedExchange, RegistryContext } from '../context.ts';
import { answerJson } from './answer.ts';
import { tags } from '../content/documents.ts';
import { RegistryError } from '../errors.ts';
import { requireRepository } from '../content/repositories.ts';
import { singleParameter } from './request-target.ts';

/** Even who asks for a billion gets pages: 10,000 tags are a megabyte or two. */
const maxPage = 10_000;

/** `GET …/tags/list`: a repository's tags in the order of their bytes, in pages. */
export async function listTags(
  { store }: RegistryContext,
  { response, query }: GrantedExchange,
  { repository }: { readonly repository: string },
): Promise<void> {
  const limit = pageSize(singleParameter(query, 'n'));
  const last = singleParameter(query, 'last');
  await requireRepository(store, repository);
  const found =
    limit === 0
      ? []
      : await store.find(tags, {
          index: 'byRepository',
          equals: { repository },
          // One more than is shown tells whether there is another page.
          limit: limit + 1,
          ...(last !== undefined && { range: { after: last } }),
        });
  const page = found.slice(0, limit).map(({ tag }) => tag);
  const next = found.length > page.length ? page.at(-1) : undefined;
  const link = next !== undefined && { link: `</v2/${repository}/tags/list?n=${limit}&last=${next}>; rel="next"` };
  answerJson(response, 200, { name: repository, tags: page }, { ...link });
}

/** The `n` of a listing: how many names a page has. Throws `parameter-invalid`. */
export function pageSize(text: string | undefined): number {
  if (text === undefined) return maxPage;
  if (!/^[0-9]+$/.test(text)) throw new RegistryError('parameter-invalid', { detail: 'n is not a number' });
  return Math.min(Number(text), maxPage);
}
