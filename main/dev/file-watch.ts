/** Watches the files of a build: the context except files that `.dockerignore` excludes, and the Dockerfile. */
import { readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { watch } from 'chokidar';
import type { FSWatcher } from 'chokidar';
import { IgnoreRules } from './ignore-rules.ts';
import type { BuildSettings } from './settings.ts';

export interface FileWatchOptions {
  readonly build: BuildSettings;
  /** Called with the path of each file that is added, changed or removed, relative to the context. */
  readonly onChange: (path: string) => void;
  readonly onProblem: (problem: string) => void;
}

/** Not watched, because every git command writes here, and images rarely need it. */
const gitFolder = '.git';

/** Watches until disposed. Reports only changes after it has opened. */
export async function openFileWatch(options: FileWatchOptions): Promise<AsyncDisposable> {
  const opened = new FileWatch(options);
  await opened.open();
  return opened;
}

class FileWatch implements AsyncDisposable {
  readonly #options: FileWatchOptions;
  /** The Dockerfile and the ignore files, which determine the files that a build reads. */
  readonly #decisive: ReadonlySet<string>;
  #watcher: FSWatcher | undefined;
  #opening: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    const { context, dockerfile } = options.build;
    this.#decisive = new Set([dockerfile, `${dockerfile}.dockerignore`, join(context, '.dockerignore')]);
  }

  async open(): Promise<void> {
    const { context } = this.#options.build;
    const rules = new IgnoreRules(await this.#ignoreText());
    const watcher = watch([context, ...this.#decisive], {
      ignoreInitial: true,
      // A build copies a symbolic link as it is.
      followSymlinks: false,
      ignored: (path) => {
        const inside = relative(context, path).split(sep).join('/');
        if (inside === '' || this.#decisive.has(path)) return false;
        if (inside === gitFolder || inside.startsWith(`${gitFolder}/`)) return true;
        // chokidar does not enter an ignored folder, so a folder counts only if everything below it is ignored, too.
        return rules.ignoresAllBelow(inside);
      },
    });
    watcher.on('all', (_event, path) => this.#change(path, rules));
    watcher.on('error', (error) => this.#options.onProblem(problemOf(error)));
    // Not `once` of node:events, which rejects at an error: the limit of the system is a problem to report.
    await new Promise<void>((resolve) => watcher.once('ready', resolve));
    const before = this.#watcher;
    this.#watcher = watcher;
    await before?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#opening;
    await this.#watcher?.close();
  }

  #change(path: string, rules: IgnoreRules): void {
    const inside = relative(this.#options.build.context, path).split(sep).join('/');
    if (!this.#decisive.has(path) && rules.ignores(inside)) return;
    this.#options.onChange(inside);
    if (!path.endsWith('.dockerignore') || this.#isClosed) return;
    this.#opening = this.#opening
      .then(() => this.open())
      .catch((error: unknown) => this.#options.onProblem(problemOf(error)));
  }

  /** Docker prefers the ignore file that is named for the Dockerfile. */
  async #ignoreText(): Promise<string> {
    const { context, dockerfile } = this.#options.build;
    for (const path of [`${dockerfile}.dockerignore`, join(context, '.dockerignore')]) {
      const text = await readFile(path, 'utf8').catch(() => undefined);
      if (text !== undefined) return text;
    }
    return '';
  }
}

function problemOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const isLimit = code === 'ENOSPC' || code === 'EMFILE';
  const advice = isLimit ? ': raise fs.inotify.max_user_watches, or name large folders in .dockerignore' : '';
  return `Changes of files may be missed (${message})${advice}`;
}
