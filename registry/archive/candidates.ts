/** Which images an archive holds, which of them is meant, and under which tags. */
import { tagPattern } from '../../contract/names.ts';
import { ApiError } from '../../model/api-error.ts';
import { maxArchiveTags } from './limits.ts';
import { badArchive } from './api-errors.ts';

/** One image of an archive. */
export interface Candidate<Root> {
  /** By which it can be chosen: the digest of its manifest, or of its config where the archive has no manifest. */
  readonly digest: string;
  /** Names as the archive has them: `host/name:tag`, or only a tag. */
  readonly names: readonly string[];
  readonly root: Root;
}

/** What a client wants of an archive. */
export interface Wish {
  /** The tag to set, instead of those that the archive names. */
  readonly tag?: string | undefined;
  /** Which image, where there are several: a name, a tag or a digest. */
  readonly image?: string | undefined;
}

export interface Choice<Root> {
  readonly root: Root;
  readonly tagNames: readonly [string, ...string[]];
}

/** What an image is tagged with that has no tag in the archive: what `docker push` would say. */
const defaultTag = 'latest';

/** The image that is meant, if there is one and only one. Throws `BadRequest`. */
export function choose<Root>(all: readonly Candidate<Root>[], wish: Wish): Choice<Root> {
  const candidates = merged(all);
  const fitting = wish.image === undefined ? candidates : candidates.filter((each) => fits(each, wish.image ?? ''));
  const [chosen, ...others] = fitting;
  const list = candidates.map(({ names, digest }) => names[0] ?? digest).join(', ');
  if (!chosen)
    throw badArchive(candidates.length === 0 ? 'holds no image' : `has no image "${wish.image}", but ${list}`);
  if (others.length > 0) {
    throw badArchive(`holds ${fitting.length} images, name one in the field "image": ${list}`);
  }
  return { root: chosen.root, tagNames: tagsFor(chosen, wish) };
}

function tagsFor<Root>({ names }: Candidate<Root>, { tag }: Wish): [string, ...string[]] {
  if (tag !== undefined) return [tag];
  const [first = defaultTag, ...more] = new Set(names.flatMap((name) => tagOf(name) ?? []));
  if (more.length >= maxArchiveTags)
    throw badArchive(`has more than ${maxArchiveTags} tags for one image, send one as "tag"`);
  return [first, ...more];
}

/** An image with several tags stands in an archive once for each of them. */
function merged<Root>(all: readonly Candidate<Root>[]): Candidate<Root>[] {
  const byDigest = new Map<string, Candidate<Root>>();
  for (const each of all) {
    const names = [...(byDigest.get(each.digest)?.names ?? []), ...each.names];
    byDigest.set(each.digest, { ...each, names });
  }
  return [...byDigest.values()];
}

function fits<Root>({ digest, names }: Candidate<Root>, image: string): boolean {
  return (
    digest === image || names.some((name) => name === image || name.endsWith(`/${image}`) || tagOf(name) === image)
  );
}

/** The tag in a name: what stands behind the last colon that is not that of a port, or the name if it is only a tag. */
function tagOf(name: string): string | undefined {
  const [path = ''] = name.split('@');
  const last = path.slice(path.lastIndexOf('/') + 1);
  const colonAt = last.lastIndexOf(':');
  if (colonAt < 0 && path.includes('/')) return undefined;
  const tag = last.slice(colonAt + 1);
  return tagPattern.test(tag) ? tag : undefined;
}

/** A tag as a client sent it. Throws `BadRequest`. */
export function checkedTag(tag: string | undefined): string | undefined {
  if (tag === undefined || tagPattern.test(tag)) return tag;
  throw new ApiError('BadRequest', 'tag: Use up to 128 letters, digits, dots, hyphens and underscores');
}
