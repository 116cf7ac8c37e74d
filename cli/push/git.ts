/** The git commit of a folder. */
import { CliError } from '../errors.ts';
import { runProgram } from '../program-runner.ts';
import type { ProgramOptions } from '../program-runner.ts';

/** The commit of a clean working tree. */
export interface GitCommit {
  readonly hash: string;
  /** Absent when no branch is checked out. */
  readonly branch: string | undefined;
  readonly message: string;
  /** `<owner>/<name>`, or the path of the remote. Absent without a remote. */
  readonly repository?: string;
  /** The address of the repository. Absent without a remote. */
  readonly source?: string;
}

export interface GitOptions extends ProgramOptions {
  readonly cwd: string;
  /** Whether uncommitted changes are allowed. */
  readonly allowDirty: boolean;
}

/** Reads the current commit. Refuses a working tree with changes, because the image would differ from the commit. */
export async function gitCommit(options: GitOptions): Promise<GitCommit> {
  const git = async (...args: string[]) => await runProgram('git', args, options);
  const head = await git('rev-parse', '--verify', 'HEAD');
  if (head.code !== 0) {
    throw new CliError('NoCommit', `${options.cwd} is not in a git repository with a commit`, {
      hint: 'Leave --include-git-commit out',
    });
  }
  const changes = (await git('status', '--porcelain')).stdout;
  if (changes !== '' && !options.allowDirty) {
    const count = changes.trimEnd().split('\n').length;
    throw new CliError('DirtyTree', `The working tree has ${count} uncommitted ${count === 1 ? 'change' : 'changes'}`, {
      hint: 'Commit them, or use --allow-dirty to push them with the labels of the last commit',
    });
  }
  const [branch, message, remote] = await Promise.all([
    git('symbolic-ref', '--quiet', '--short', 'HEAD'),
    git('log', '-1', '--format=%B'),
    git('remote', 'get-url', 'origin'),
  ]);
  return {
    hash: head.stdout.trim(),
    branch: branch.code === 0 ? branch.stdout.trim() : undefined,
    message: message.stdout.trim(),
    ...(remote.code === 0 && remoteOf(remote.stdout.trim())),
  };
}

interface Remote {
  /** `acme/whiteboard` of `https://github.com/acme/whiteboard.git` or `git@github.com:acme/whiteboard.git`. */
  readonly repository: string;
  /** The address of the repository in a browser. */
  readonly source: string;
}

/** Parses the address of a remote. The result has no password. Undefined for a path of this machine. */
export function remoteOf(remote: string): Remote | undefined {
  const [, scheme, host, path] =
    /^([a-z+]+):\/\/([^/]+)\/(.+)$/.exec(remote) ?? /^()([^/:]+):(?!\/\/)(.+)$/.exec(remote) ?? [];
  const repository = path?.replace(/^\/+/, '').replace(/\/*(?:\.git)?\/*$/, '');
  if (host === undefined || !repository) return undefined;
  const name = host.replace(/^.*@/, '');
  // The port of SSH is not that of the pages.
  const base = /^https?$/.test(scheme ?? '') ? `${scheme}://${name}` : `https://${name.replace(/:\d+$/, '')}`;
  return { repository, source: `${base}/${repository}` };
}
