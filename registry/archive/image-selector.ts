/** Selects one of the images in an archive, and the tags for it. */
import { tagPattern } from '../../contract/names.ts';
import { ApiError } from '../../model/api-error.ts';
import { badArchive } from './api-errors.ts';
import { maxArchiveTags } from './limits.ts';

/** One image of an archive. */
export interface ArchiveImage<Root> {
  /** The digest of its manifest, or of its config if the archive has no manifest. */
  readonly digest: string;
  /** Names in the archive: `host/name:tag`, or only a tag. */
  readonly names: readonly string[];
  readonly root: Root;
}

/** What the client requests. */
export interface ImageSelector {
  /** The tag to set, instead of those in the archive. */
  readonly tag?: string | undefined;
  /** Which image, if there are several: a name, a tag or a digest. */
  readonly image?: string | undefined;
}

export interface SelectedImage<Root> {
  readonly root: Root;
  readonly tagNames: readonly [string, ...string[]];
}

/** The tag of an image that has none in the archive: the default of `docker push`. */
const defaultTag = 'latest';

/** Returns the image that the selector matches. Throws `BadRequest` unless there is exactly one. */
export function selectImage<Root>(
  all: readonly ArchiveImage<Root>[],
  { tag, image }: ImageSelector,
): SelectedImage<Root> {
  const images = merged(all);
  const matching = image === undefined ? images : images.filter((each) => matches(each, image));
  const [selected, ...others] = matching;
  const list = images.map(({ names, digest }) => names[0] ?? digest).join(', ');
  if (!selected) throw badArchive(images.length === 0 ? 'holds no image' : `has no image "${image}", but ${list}`);
  if (others.length > 0) throw badArchive(`holds ${matching.length} images, name one in the field "image": ${list}`);
  return { root: selected.root, tagNames: tag === undefined ? tagsOf(selected.names) : [tag] };
}

/** Checks a tag that a client sent. Throws `BadRequest`. */
export function checkedTag(tag: string | undefined): string | undefined {
  if (tag === undefined || tagPattern.test(tag)) return tag;
  throw new ApiError('BadRequest', 'tag: Use up to 128 letters, digits, dots, hyphens and underscores');
}

function tagsOf(names: readonly string[]): [string, ...string[]] {
  const [first = defaultTag, ...more] = new Set(names.flatMap((name) => tagOf(name) ?? []));
  if (more.length < maxArchiveTags) return [first, ...more];
  throw badArchive(`has more than ${maxArchiveTags} tags for one image, send one as "tag"`);
}

/** Merges the entries of an image that has several tags: an archive lists it once per tag. */
function merged<Root>(all: readonly ArchiveImage<Root>[]): ArchiveImage<Root>[] {
  const byDigest = new Map<string, ArchiveImage<Root>>();
  for (const each of all) {
    const names = [...(byDigest.get(each.digest)?.names ?? []), ...each.names];
    byDigest.set(each.digest, { ...each, names });
  }
  return [...byDigest.values()];
}

function matches<Root>({ digest, names }: ArchiveImage<Root>, image: string): boolean {
  return (
    digest === image || names.some((name) => name === image || name.endsWith(`/${image}`) || tagOf(name) === image)
  );
}

/** The tag in a name: the part after the last colon that does not precede a port, or the whole name if it is only a tag. */
function tagOf(name: string): string | undefined {
  const [path = ''] = name.split('@');
  const last = path.slice(path.lastIndexOf('/') + 1);
  const colonAt = last.lastIndexOf(':');
  if (colonAt < 0 && path.includes('/')) return undefined;
  const tag = last.slice(colonAt + 1);
  return tagPattern.test(tag) ? tag : undefined;
}
