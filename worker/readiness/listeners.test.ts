import { describe, expect, test } from 'vitest';
import { portForwardFor, explainListeners, parseListeners } from './listeners.ts';
import type { Listener } from './listeners.ts';

const all4: Listener = { scope: 'all', family: 4, port: 8080 };
const all6: Listener = { scope: 'all', family: 6, port: 8080 };
const local4: Listener = { scope: 'localhost', family: 4, port: 8080 };
const local6: Listener = { scope: 'localhost', family: 6, port: 8080 };

test('listeners are parsed as the kernel prints them, without the DNS server of Docker', () => {
  const lines = [
    '00000000:1F90',
    '0100007F:1F90',
    '0B00007F:A3C1',
    '0201000A:0050',
    '00000000000000000000000000000000:1F90',
    '00000000000000000000000001000000:1F90',
    '0000000000000000FFFF00000100007F:1F90',
    '000080FE00000000FF005450B6AD1DFE:0050',
  ];
  expect(parseListeners(lines.join('\n'))).toEqual([
    all4,
    local4,
    { scope: 'other', family: 4, port: 80 },
    all6,
    local6,
    local6,
    { scope: 'other', family: 6, port: 80 },
  ]);
});

test.each(['', 'x', '0100007F', '0100007F:1F90 more', '0100007F:0000', '00:1F90', '\0'])(
  'a line that is not a listener is ignored: %j',
  (line) => expect(parseListeners(line)).toEqual([]),
);

describe('a port forward', () => {
  test.each([
    ['localhost', [local4], '127.0.0.1'],
    ['localhost of both families', [local6, local4], '127.0.0.1'],
    ['localhost of IPv6', [local6], '::1'],
    ['every address of IPv6, which IPv4 may not reach', [all6], '::1'],
  ])('reaches a program on %s', (_what, listeners: Listener[], target) => {
    expect(portForwardFor(listeners, 8080)).toEqual({ port: 61_000, target, targetPort: 8080 });
  });

  test('is not needed for a program that listens on every address', () => {
    expect(portForwardFor([all4], 8080)).toBeUndefined();
  });

  test('uses a port on which nothing listens', () => {
    const used = [61_000, 61_001].map((port): Listener => ({ ...all4, port }));
    expect(portForwardFor([local4, ...used], 8080)?.port).toBe(61_002);
  });

  test('is only for the expected port', () => {
    const at = (port: number): Listener => ({ ...local4, port });
    expect(portForwardFor([at(8080), at(80)], 80)?.targetPort).toBe(80);
    expect(portForwardFor([at(8080), at(9000)], 80)).toBeUndefined();
  });
});

test.each([
  [[], false, 'listens on no TCP port, expected 80'],
  [
    [all4],
    false,
    "listens on 8080, expected 80: set the service's port to 8080, or make the application listen on $PORT",
  ],
  [[all4], true, "listens on 8080, expected 80: correct the service's port, or make the application listen on $PORT"],
  [
    [local4, { ...all6, port: 9000 }],
    false,
    "listens on 8080 (on localhost only) and 9000, expected 80: set the service's port to the right one, or make the application listen on $PORT",
  ],
  [
    [{ ...local4, port: 80 }],
    false,
    'listens on port 80 on localhost only: make the application listen on 0.0.0.0, the value of $HOST',
  ],
])('%j, configured %s: the container %s', (listeners: Listener[], isConfigured, words) => {
  expect(explainListeners(listeners, { port: 80 }, isConfigured)).toBe(words);
});

test('the sentence names a limited number of ports', () => {
  const many = Array.from({ length: 256 }, (_, i): Listener => ({ ...all4, port: 1000 + i }));
  expect(explainListeners(many, { port: 80 }, false)).toMatch(
    /^listens on 1000, 1001, 1002, 1003, 1004 and others, expected/,
  );
});
