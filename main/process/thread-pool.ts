/**
 * The number of threads with which libuv reads, writes and syncs files. Its default is four. A sync blocks a thread until the disk
 * is done, so with more than four pushes at once, reads would wait for the syncs of other requests. A waiting thread costs almost
 * nothing.
 */
const threads = 16;

/**
 * Sets the size of the thread pool of this process, unless the environment sets it. `environment` must be the environment of this
 * process. Call it first: it has no effect after the first file operation.
 */
export function sizeThreadPool(environment: NodeJS.ProcessEnv): void {
  environment['UV_THREADPOOL_SIZE'] ??= String(threads);
}
