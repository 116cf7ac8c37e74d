/** Watches which image a name refers to: a build or a pull can move it to another image. */
import { runDocker } from './docker.ts';
import type { Environment } from './docker.ts';

export interface ImageWatchOptions {
  readonly image: string;
  readonly environment: Environment;
  /** Called when the name refers to another image. */
  readonly onChange: (image: string) => void;
  readonly onProblem: (problem: string) => void;
}

/** Watches until disposed. */
export async function openImageWatch({
  image,
  environment,
  onChange,
  onProblem,
}: ImageWatchOptions): Promise<AsyncDisposable> {
  const closing = new AbortController();
  const { signal } = closing;
  const docker = { environment, signal };
  const currentId = async () =>
    await runDocker(['image', 'inspect', '--format', '{{.Id}}', image], docker).then(
      ([id]) => id,
      () => undefined,
    );
  const since = Math.floor(Date.now() / 1000);
  let id = await currentId();
  const check = async () => {
    const current = await currentId();
    // The name is being moved, or was removed: the served image stays.
    if (current === undefined || current === id) return;
    id = current;
    onChange(image);
  };
  let checking = Promise.resolve();
  // Engines differ in the events of builds, pulls and loads, so every event of an image triggers a check.
  const onLine = () => void (checking = checking.then(check));
  // With earlier events, because the name may be moved before the engine follows them.
  const follow = ['events', '--since', String(since), '--filter', 'type=image', '--format', '{{.Action}}'];
  const watching = runDocker(follow, { ...docker, onLine })
    .catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
    .then((reason) => {
      if (!signal.aborted) onProblem(`Docker reports no more changes of the image (${String(reason)}): start again`);
    });
  return {
    [Symbol.asyncDispose]: async () => {
      closing.abort(new Error('The development server stops'));
      await watching;
      await checking;
    },
  };
}
