import { services } from '../../model/service.ts';
import type { GrantedExchange, RegistryContext } from '../context.ts';
import { answerJson } from './answer.ts';
import { singleParameter } from './request-target.ts';
import { pageSize } from './tags.ts';

/**
 * `GET /v2/_catalog`: the repositories of the caller's account, in the order of their bytes, in pages. What other accounts
 * have made public is not listed: that could be any number.
 */
export async function listCatalog(
  { store }: RegistryContext,
  { response, query, caller }: GrantedExchange,
): Promise<void> {
  const account = caller.subject;
  const limit = pageSize(singleParameter(query, 'n'));
  const after = nameAfter(singleParameter(query, 'last'), `${account}/`);
  const found =
    limit === 0 || after === 'the end'
      ? []
      : await store.find(services, {
          index: 'byAccount',
          equals: { account },
          // One more than is shown tells whether there is another page.
          limit: limit + 1,
          ...(after !== 'the beginning' && { range: { after: after.name } }),
        });
  const page = found.slice(0, limit).map(({ id }) => id);
  const next = found.length > page.length ? page.at(-1) : undefined;
  const link = next !== undefined && { link: `</v2/_catalog?n=${limit}&last=${next}>; rel="next"` };
  answerJson(response, 200, { repositories: page }, { ...link });
}

/** Where a listing goes on after `last`, which may be any text, in an account whose repositories begin with `prefix`. */
function nameAfter(last: string | undefined, prefix: string): { name: string } | 'the beginning' | 'the end' {
  if (last === undefined) return 'the beginning';
  if (last.startsWith(prefix)) return { name: last.slice(prefix.length) };
  return last < prefix ? 'the beginning' : 'the end';
}
