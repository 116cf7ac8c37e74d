import { expect, test } from 'vitest';
import { expectedPorts } from './backend-port.ts';

test.each([
  ['the configured port alone, whatever the image exposes', 3000, [80], { port: 3000 }],
  ['8080 if the image exposes nothing', undefined, [], { port: 8080 }],
  ['8080 if the image exposes several ports', undefined, [80, 443], { port: 8080 }],
  ['the only exposed port, and otherwise 8080', undefined, [8888], { port: 8888, otherwise: 8080 }],
  ['8080 if that is the only exposed port', undefined, [8080], { port: 8080 }],
])('a container should listen on %s', (_what, configured, exposed, expected) => {
  expect(expectedPorts(configured, exposed)).toEqual(expected);
});
