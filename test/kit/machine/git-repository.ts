import { runCommand } from '../../../setup/command.ts';

interface Commit {
  readonly origin: string;
  readonly message: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Makes a folder a git repository with one commit of its files. Returns the commit's hash. */
export async function gitRepository(folder: string, { origin, message, env }: Commit): Promise<string> {
  const git = async (...args: string[]) => await runCommand('git', args, { cwd: folder, env });
  await git('init', '--quiet', '--initial-branch=main');
  await git('config', 'user.name', 'Ada');
  await git('config', 'user.email', 'ada@example.com');
  await git('remote', 'add', 'origin', origin);
  await git('add', '.');
  await git('commit', '--quiet', `--message=${message}`);
  return (await git('rev-parse', 'HEAD')).trim();
}
