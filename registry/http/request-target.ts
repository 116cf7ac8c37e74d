/**
 * From a method and a raw request target to a route. The path is never percent-decoded: everything legal in it is
 * plain ASCII, so an escape is a trick (`%2e%2e`, `%2f`, `%00`) and fails the grammar of names. The one exception is the
 * colon of a digest, which careful clients escape.
 */
import { accountName, digestPattern, serviceName, tagPattern } from '../../contract/names.ts';
import { RegistryError } from '../errors.ts';

/** What a manifest is asked for by. */
export type Reference = { readonly tag: string } | { readonly digest: string };

/** What a path can have in it. */
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

/** Finds requests' routes in a table, the first path that matches. It throws `RegistryError` where nothing legal is asked for. */
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
  if (values.length > 1) throw new RegistryError('parameter-invalid', { detail: `${name} stands more than once` });
  return values[0];
}

/** Whether a repository of this name can be: `<account>/<service>`, both legal. */
export function isRepositoryName(name: string): boolean {
  const [account, service, ...more] = name.split('/');
  return accountName.safeParse(account).success && serviceName.safeParse(service).success && more.length === 0;
}

/** A repository is all that stands before the rest, or nothing. The slash at the end may be left out, as some clients do. */
function patternOf(path: string): RegExp {
  const source = path
    .replace(/<(\w+)>(\/?)/g, (_all, name: string, slash: string) =>
      name === 'repository' ? '(?:(?<repository>.*)/)?' : `(?<${name}>[^/]*)${slash}`,
    )
    .replace(/\/$/, '/?');
  return new RegExp(`^${source}$`, 's');
}

/** Throws where a parameter is not legal. What is pushed to must have a legal name; anything else cannot be there. */
function checkedParameters(
  texts: Readonly<Record<string, string | undefined>>,
  row: Row | undefined,
): Partial<PathParameters> {
  const isPush = row?.right[0] === 'push';
  const { digest, reference, uploadId } = texts;
  return {
    ...('repository' in texts && { repository: repositoryOf(texts['repository'] ?? '', isPush) }),
    ...(digest !== undefined && { digest: digestOf(withColon(digest)) }),
    ...(reference !== undefined && { reference: referenceOf(withColon(reference), isPush) }),
    ...(uploadId !== undefined && { uploadId: uploadIdOf(uploadId) }),
  };
}

/** A name that nothing can have been pushed to is unknown, not wrong: clients ask for `library/…` and the like. */
function repositoryOf(name: string, isPush: boolean): string {
  if (isRepositoryName(name)) return name;
  const isLegalElsewhere = name.length <= maxNameLength && namePattern.test(name);
  throw new RegistryError(isLegalElsewhere && !isPush ? 'name-unknown' : 'name-invalid');
}

function digestOf(text: string): string {
  if (digestPattern.test(text)) return text;
  throw new RegistryError('digest-invalid');
}

function referenceOf(text: string, isPush: boolean): Reference {
  if (text.includes(':')) return { digest: digestOf(text) };
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
