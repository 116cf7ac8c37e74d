// Takes about 30 s
// Runs in a process of its own
/** Repeats tests of plain requests on the general path, which must treat them in the same way. */
import { useGeneralPath } from './testing/fixture.ts';

useGeneralPath();
await import('./bearer-token.test.ts');
await import('./errors.test.ts');
await import('./metrics.test.ts');
await import('./request-headers.test.ts');
await import('./response-headers.test.ts');
await import('./session-hosts.test.ts');
await import('./forward/answer-limits.test.ts');
await import('./forward/web.test.ts');
await import('./forward/leaving.test.ts');
await import('./forward/pools.test.ts');
await import('./forward/streams.test.ts');
