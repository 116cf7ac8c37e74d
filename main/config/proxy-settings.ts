/** The threads of the proxy, the requests that it holds, and how it closes connections when it stops. */
import { whole } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';

export const proxySettings = {
  holdSeconds: {
    variable: 'BERTH_HOLD_SECONDS',
    schema: whole({ min: 1, max: 24 * 3600, or: 60 }),
    help: 'How long the proxy holds a request whose backend is starting. Then it answers 503 `starting`. Browsers get the readiness page after a second.',
  },
  maxHeldRequests: {
    variable: 'BERTH_MAX_HELD_REQUESTS',
    schema: whole({ min: 1, max: 1_000_000, or: 5_000 }),
    help: 'How many requests a proxy holds at a time, at most 1000 of them for one backend. Further ones are answered with 503 `starting`.',
  },
  proxyThreads: {
    variable: 'BERTH_PROXY_THREADS',
    schema: whole({ min: 0, max: 64, or: 1 }),
    help: 'How many threads the proxy of this process has. Each has its own event loop and heap, so pushes and connects do not delay sessions. Several threads share one port, which requires Linux. 0: the proxy runs in the thread of the other components.',
  },
  webSocketPingSeconds: {
    variable: 'BERTH_WEBSOCKET_PING_SECONDS',
    schema: whole({ min: 0, max: 3600, or: 30 }),
    help: 'After this time without a message, the proxy sends the client of a WebSocket a Ping, and disconnects a client that does not answer within the same time. So a client that has vanished behind a load balancer does not keep a backend running. 0: no pings.',
  },
  drainSeconds: {
    variable: 'BERTH_DRAIN_SECONDS',
    schema: whole({ min: 0, max: 3600, or: 5 }),
    help: 'How long open requests and WebSockets may take to end when the proxy stops. Then the proxy closes their connections.',
  },
  drainNoticeSeconds: {
    variable: 'BERTH_DRAIN_NOTICE_SECONDS',
    schema: whole({ min: 0, max: 3600, or: 1 }),
    help: 'When the proxy stops, it closes WebSockets with code 1012 after this time, and their clients connect again. Use the time that the load balancer in front needs to detect that the proxy accepts no connections.',
  },
  accessLogPercent: {
    variable: 'BERTH_ACCESS_LOG_PERCENT',
    schema: whole({ min: 0, max: 100, or: 100 }),
    help: 'The share of requests through the proxy that are logged. Requests that fail with a status of 500 or above, that the proxy answers with an error, or whose connection breaks are always logged.',
  },
} satisfies Record<string, Setting<unknown>>;
