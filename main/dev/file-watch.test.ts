import { EventEmitter } from 'node:events';
import { expect, test, vi } from 'vitest';
import { openFileWatch } from './file-watch.ts';

class FakeWatcher extends EventEmitter {
  isClosed = false;

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

const watcher = new FakeWatcher();
vi.mock('chokidar', () => ({ watch: () => watcher }));

test('a limit of the system on watches is a problem to report, and no reason not to start', async () => {
  const problems: string[] = [];
  const build = { context: '/nowhere', dockerfile: '/nowhere/Dockerfile', target: undefined, buildArgs: [] };
  const opening = openFileWatch({ build, onChange: () => {}, onProblem: (problem) => problems.push(problem) });
  await expect.poll(() => watcher.listenerCount('ready')).toBe(1);
  watcher.emit(
    'error',
    Object.assign(new Error('System limit for number of file watchers reached'), { code: 'ENOSPC' }),
  );
  watcher.emit('ready');
  await (await opening)[Symbol.asyncDispose]();
  expect(problems).toEqual([
    'Changes of files may be missed (System limit for number of file watchers reached): raise fs.inotify.max_user_watches, or name large folders in .dockerignore',
  ]);
  expect(watcher.isClosed).toBe(true);
});
