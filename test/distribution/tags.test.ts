/** end-8: the tags of a repository, in order, complete and in pages. */
import { expect, test } from 'vitest';
import type { Answer } from '../kit/registry/registry.ts';
import { json, nextOf, onAllRegistries } from './fixture.ts';
import type { Repository } from './fixture.ts';

interface TagList {
  readonly name: string;
  readonly tags: string[];
}

const tagListOf = (answer: Answer) => json(answer) as TagList;

/** In byte order. Some are prefixes of others, which some registries omit from lists. */
const sorted = ['V1', '_x', 'a', 'a-', 'a-b', 'a.b', 'aa', 'v1', 'v1.0', 'v10', 'v2'];

onAllRegistries((fixture) => {
  const tagged = async (): Promise<Repository> => {
    const repository = fixture.repository();
    const image = await repository.image();
    for (const tag of sorted.toReversed()) await repository.put(tag, image);
    return repository;
  };

  test('returns pages of every size, by last and by Link', async () => {
    const repository = await tagged();
    const all = await repository.send('tags/list');
    expect([all.status, all.headers['content-type'], all.headers.link]).toEqual([200, 'application/json', undefined]);
    expect(tagListOf(all)).toEqual({ name: repository.name, tags: sorted });
    for (const n of [1, 2, 3, 5, sorted.length - 1]) {
      const seen: string[] = [];
      let path: string | undefined = `tags/list?n=${n}`;
      while (path !== undefined) {
        const page = await repository.send(path);
        const { tags } = tagListOf(page);
        expect(tags.length).toBe(Math.min(n, sorted.length - seen.length));
        seen.push(...tags);
        const next = nextOf(page);
        if (next !== undefined) expect(next).toBe(repository.path(`tags/list?n=${n}&last=${tags.at(-1)}`));
        path = next;
      }
      expect(seen).toEqual(sorted);
    }
    for (const n of [sorted.length, sorted.length + 1, 1_000_000_000, '9'.repeat(400)]) {
      const page = await repository.send(`tags/list?n=${n}`);
      expect([tagListOf(page).tags, page.headers.link]).toEqual([sorted, undefined]);
    }
    const none = await repository.send('tags/list?n=0');
    expect([none.status, tagListOf(none).tags, none.headers.link]).toEqual([200, [], undefined]);
    for (const [last, expected] of [
      ['a-', sorted.slice(4)],
      // An absent tag is also a position in the order.
      ['a0', sorted.slice(6)],
      ['v2', []],
      ['zzz', []],
      ['', sorted],
    ] as const) {
      const page = await repository.send(`tags/list?last=${last}`);
      expect([last, tagListOf(page).tags]).toEqual([last, expected]);
    }
  });

  test('a repository without tags is found, and an unknown one is not', async () => {
    const repository = fixture.repository();
    expect((await repository.send('tags/list')).code).toBe('NAME_UNKNOWN');
    await repository.put('only', await repository.image());
    await repository.send('manifests/only', { method: 'DELETE' });
    expect(json(await repository.send('tags/list'))).toEqual({ name: repository.name, tags: [] });
  });
});
