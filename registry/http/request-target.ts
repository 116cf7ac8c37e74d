/**
 * Finds the route of a method and a raw request target. The path is never percent-decoded: all valid paths are plain ASCII, so
 * an escape is an attack (`%2e%2e`, `%2f`, `%00`) and fails the grammar of names. The only exception is the colon of a digest,
 * which some clients escape.
 */
import { accountName, serviceName, tagPattern } from '../../contract/names.ts';
import { checkedDigest } from '../content/digests.ts';
import { RegistryError } from '../errors.ts';

/** The tag or digest by which a path names a manifest. */
export type Reference = { readonly tag: string } | { readonly digest: string };

/** The parameters that paths may have. */
export interface PathParameters {
  /** `<account>/<service>`. */
  readonly repository: string;
  readonly digest: string;
  readonly reference: Reference;
  readonly uploadId: string;
}

/** The parameters of a path such as `/v2/<repository>/blobs/<digest>`. */
export type ParametersIn<Path extends string> = Pick<PathParameters, NamesIn<Path>>;

type NamesIn<Path extends string> = Path extends `${string}<${infer Name extends keyof PathParameters}>${infer Rest}`
  ? Name | NamesIn<Rest>
  : never;

interface Row {
  readonly method: string;
  readonly path: string;
  readonly right: string | readonly string[];
}

export interface FoundRoute<R extends Row> {
  readonly route: R;
  readonly parameters: Partial<PathParameters>;
  readonly query: URLSearchParams;
}

/** OCI distribution-spec, "Pulling manifests": the grammar of repository names in general. */
const namePattern = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;

/** Clients cap host and name together at 255. */
const maxNameLength = 255;

const uploadIdPattern = /^[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}$/;

/** Returns a function that finds the route of a request: the first matching path. It throws a `RegistryError` if there is none. */
export function routeFinder<R extends Row>(table: readonly R[]): (method: string, target: string) => FoundRoute<R> {
  const byPath = Array.from(
    Map.groupBy(table, ({ path }) => path),
    ([path, rows]) => ({
      pattern: patternOf(path),
      rows,
    }),
  );
  return (method, target) => {
    const queryAt = target.indexOf('?');
    const path = queryAt < 0 ? target : target.slice(0, queryAt);
    const query = new URLSearchParams(queryAt < 0 ? '' : target.slice(queryAt + 1));
    for (const { pattern, rows } of byPath) {
      const match = pattern.exec(path);
      if (!match) continue;
      const route = rows.find((row) => row.method === method);
      const parameters = checkedParameters(match.groups ?? {}, route ?? rows[0]);
      if (route) return { route, parameters, query };
      throw new RegistryError('method-not-allowed', { headers: { allow: rows.map((row) => row.method).join(', ') } });
    }
    throw new RegistryError('not-found');
  };
}

/** The one value of a parameter. Throws `parameter-invalid` if it is repeated. */
export function singleParameter(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1) throw new RegistryError('parameter-invalid', { detail: `${name} is repeated` });
  return values[0];
}

/** Whether a name is a valid `<account>/<service>`. */
export function isRepositoryName(name: string): boolean {
  const [account, service, ...more] = name.split('/');
  return accountName.safeParse(account).success && serviceName.safeParse(service).success && more.length === 0;
}

/** The repository is everything before the rest of the path, or nothing. The last slash is optional: some clients omit it. */
function patternOf(path: string): RegExp {
  const source = path
    .replace(/<(\w+)>(\/?)/g, (_all, name: string, slash: string) =>
      name === 'repository' ? '(?:(?<repository>.*)/)?' : `(?<${name}>[^/]*)${slash}`,
    )
    .replace(/\/$/, '/?');
  return new RegExp(`^${source}$`, 's');
}

/** Throws if a parameter is invalid. A push to an invalid name is an error; for other requests, the name does not exist. */
function checkedParameters(
  texts: Readonly<Record<string, string | undefined>>,
  row: Row | undefined,
): Partial<PathParameters> {
  const isPush = row?.right[0] === 'push';
  const { digest, reference, uploadId } = texts;
  return {
    ...('repository' in texts && { repository: repositoryOf(texts['repository'] ?? '', isPush) }),
    ...(digest !== undefined && { digest: checkedDigest(withColon(digest)) }),
    ...(reference !== undefined && { reference: referenceOf(withColon(reference), isPush) }),
    ...(uploadId !== undefined && { uploadId: uploadIdOf(uploadId) }),
  };
}

/** A name that is valid in other registries is unknown, not invalid: clients request `library/…` and the like. */
function repositoryOf(name: string, isPush: boolean): string {
  if (isRepositoryName(name)) return name;
  const isLegalElsewhere = name.length <= maxNameLength && namePattern.test(name);
  throw new RegistryError(isLegalElsewhere && !isPush ? 'name-unknown' : 'name-invalid');
}

function referenceOf(text: string, isPush: boolean): Reference {
  if (text.includes(':')) return { digest: checkedDigest(text) };
  if (tagPattern.test(text)) return { tag: text };
  throw new RegistryError(isPush ? 'tag-invalid' : 'manifest-unknown');
}

function uploadIdOf(text: string): string {
  if (uploadIdPattern.test(text)) return text;
  throw new RegistryError('upload-unknown');
}

function withColon(text: string): string {
  return text.replace(/%3a/i, ':');
}
