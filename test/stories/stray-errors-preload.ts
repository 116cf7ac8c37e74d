/** Loaded into a process of the platform by `--import`: throws errors that the platform does not catch. */
import { ServerResponse } from 'node:http';
import { isMainThread } from 'node:worker_threads';

const timers = 100;

if (isMainThread) {
  process.on('SIGUSR2', () => {
    for (let i = 0; i < timers; i += 1) {
      setTimeout(() => {
        throw new Error('Thrown by a timer');
      }, 1);
    }
    void Promise.reject(new Error('Rejected and dropped'));
  });
  const setHeader: unknown = Reflect.get(ServerResponse.prototype, 'setHeader');
  Reflect.set(ServerResponse.prototype, 'setHeader', function setOrThrow(this: ServerResponse, ...args: unknown[]) {
    if (this.req.url === '/v2/stray') throw new Error('Thrown by a handler');
    return Reflect.apply(setHeader as () => unknown, this, args);
  });
}
