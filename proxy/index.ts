export { openProxy } from './open-proxy.ts';
export type { Proxy, ProxyDeps } from './open-proxy.ts';
