/**
 * Files are read, written and synced by libuv's threads. It starts four, and a disk that syncs keeps one for as long as it
 * takes: with more pushes than that at a time, reads would wait for other people's disks. A thread that waits costs next to
 * nothing.
 */
const threads = 16;

/** Sizes the pool of this process, whose environment it must be, unless the environment did. Works before the first file is touched, so it is the first thing to do. */
export function sizeThreadPool(environment: NodeJS.ProcessEnv): void {
  environment['UV_THREADPOOL_SIZE'] ??= String(threads);
}
