import { expect, test } from 'vitest';
import { imageConfigOf } from './image-config.ts';

const configOf = (config: object | null) =>
  imageConfigOf({ Config: config, Architecture: 'arm64', Size: 5 } as Parameters<typeof imageConfigOf>[0]);

test('an image without a configuration has empty values', () => {
  const empty = {
    command: [],
    ports: [],
    variables: [],
    user: '',
    volumes: [],
    stopSignal: '',
    architecture: 'arm64',
    sizeBytes: 5,
  };
  expect(configOf(null)).toEqual(empty);
  expect(configOf({ Entrypoint: null, Cmd: null, ExposedPorts: null, Env: null, Healthcheck: null })).toEqual(empty);
});

test('the command is the entrypoint with its arguments, and variables are known by name', () => {
  expect(
    configOf({ Entrypoint: ['/entry'], Cmd: ['a', 'b'], Env: ['PATH=/bin', 'HOST=::', 'EMPTY=', 'A=b=c'] }),
  ).toMatchObject({ command: ['/entry', 'a', 'b'], variables: ['PATH', 'HOST', 'EMPTY', 'A'] });
});

test('only TCP ports count, each one once', () => {
  const ExposedPorts = {
    '8888/tcp': {},
    '53/udp': {},
    '80': {},
    '80/tcp': {},
    '99999/tcp': {},
    '0/tcp': {},
    'x/tcp': {},
  };
  expect(configOf({ ExposedPorts }).ports).toEqual([80, 8888]);
});

test('a health check is a command, with the time limit of the image or of the engine', () => {
  const healthOf = (Healthcheck: object, more: object = {}) => configOf({ Healthcheck, ...more }).healthcheck;
  expect(healthOf({ Test: ['CMD', '/check', '-q'], Timeout: 2e9 })).toEqual({
    command: ['/check', '-q'],
    timeoutMs: 2000,
  });
  expect(healthOf({ Test: ['CMD-SHELL', 'a || exit 1'] })).toEqual({
    command: ['/bin/sh', '-c', 'a || exit 1'],
    timeoutMs: 30_000,
  });
  expect(healthOf({ Test: ['CMD-SHELL', 'a'] }, { Shell: ['/bin/bash', '-ec'] })?.command).toEqual([
    '/bin/bash',
    '-ec',
    'a',
  ]);
  expect([healthOf({ Test: ['NONE'] }), healthOf({ Test: [] }), healthOf({})]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
