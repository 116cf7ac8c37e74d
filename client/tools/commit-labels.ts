/** The labels of an image for its git commit, for the command line and the action. */

export interface LabelledCommit {
  readonly hash: string;
  readonly branch?: string | undefined;
  /** `<owner>/<name>`, or the path of the remote. */
  readonly repository?: string | undefined;
  readonly message: string;
  /** The address of the repository. */
  readonly source?: string | undefined;
}

/** The four labels from which the platform reads the commit, and those of OCI. Unknown and empty values have no label. */
export function commitLabels(commit: LabelledCommit): Readonly<Record<string, string>> {
  const { hash, branch, repository, message, source } = commit;
  const labels = {
    hash,
    branch,
    repository,
    message,
    'org.opencontainers.image.revision': hash,
    'org.opencontainers.image.ref.name': branch,
    'org.opencontainers.image.source': source,
  };
  return Object.fromEntries(Object.entries(labels).flatMap(([name, value]) => (value ? [[name, value]] : [])));
}
