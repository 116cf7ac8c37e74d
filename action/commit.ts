/** The git commit of a workflow run. */
import { readFileSync } from 'node:fs';
import { runProgram } from './push/program.ts';
import type { Environment } from './workflow/workflow.ts';

export interface Commit {
  readonly hash: string;
  readonly branch: string;
  /** `<owner>/<name>`. */
  readonly repository: string;
  /** Empty if neither the event nor git has the commit. */
  readonly message: string;
  /** The address of the repository. */
  readonly source: string;
}

/** Reads the commit from the variables of the runner, and its message from the event or from git. */
export async function currentCommit(env: Environment, signal: AbortSignal): Promise<Commit> {
  const hash = env['GITHUB_SHA'] ?? '';
  const repository = env['GITHUB_REPOSITORY'] ?? '';
  return {
    hash,
    // For a pull request, GITHUB_REF_NAME names a merge, such as 7/merge.
    branch: env['GITHUB_HEAD_REF'] || (env['GITHUB_REF_TYPE'] === 'tag' ? '' : env['GITHUB_REF_NAME']) || '',
    repository,
    message: messageOfEvent(env, hash) ?? (await messageOfGit(env, hash, signal)),
    source: repository === '' ? '' : `${env['GITHUB_SERVER_URL'] ?? 'https://github.com'}/${repository}`,
  };
}

function messageOfEvent(env: Environment, hash: string): string | undefined {
  try {
    const event = JSON.parse(readFileSync(env['GITHUB_EVENT_PATH'] ?? '', 'utf8')) as {
      head_commit?: { id?: unknown; message?: unknown } | null;
    };
    const { id, message } = event.head_commit ?? {};
    return id === hash && typeof message === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}

async function messageOfGit(env: Environment, hash: string, signal: AbortSignal): Promise<string> {
  if (!/^[0-9a-f]{40,64}$/.test(hash)) return '';
  try {
    const { code, stdout } = await runProgram('git', ['log', '-1', '--format=%B', hash], { env, signal });
    return code === 0 ? stdout.trim() : '';
  } catch {
    signal.throwIfAborted();
    return '';
  }
}
