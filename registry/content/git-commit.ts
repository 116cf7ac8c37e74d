import type { GitCommit } from '../../model/image.ts';

type Labels = Readonly<Record<string, unknown>>;

/** What a git hash (SHA-256: 64), a branch, a subject with its body, and a URL need, and no more. */
const maxLengths = { hash: 128, branch: 255, message: 4096, repository: 2048 } as const;

/** Where each field is looked for: what existing push tools write, then the OCI's annotations. */
const labelNames = {
  hash: ['hash', 'org.opencontainers.image.revision'],
  branch: ['branch', 'org.opencontainers.image.ref.name'],
  message: ['message'],
  repository: ['repository', 'org.opencontainers.image.source'],
} as const;

/** The git commit that an image's labels tell of, the first source that knows a field counting. `undefined` if none does. */
export function gitCommitOf(sources: readonly Labels[]): GitCommit | undefined {
  const commit: { -readonly [Field in keyof GitCommit]: GitCommit[Field] } = {};
  for (const field of ['hash', 'branch', 'message', 'repository'] as const) {
    const value = firstText(sources, labelNames[field]);
    if (value !== undefined) commit[field] = value.slice(0, maxLengths[field]).toWellFormed();
  }
  return Object.keys(commit).length > 0 ? commit : undefined;
}

function firstText(sources: readonly Labels[], names: readonly string[]): string | undefined {
  for (const source of sources) {
    for (const name of names) {
      const value = Object.hasOwn(source, name) ? source[name] : undefined;
      if (typeof value === 'string' && value !== '') return value;
    }
  }
  return undefined;
}
