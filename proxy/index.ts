export { openProxy } from './open-proxy.ts';
export type { Proxy } from './open-proxy.ts';
