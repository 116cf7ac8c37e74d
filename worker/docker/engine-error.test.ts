import { describe, expect, it } from 'vitest';
import { engineError } from './engine-error.ts';

/** An error as dockerode throws it for an answer of the engine. */
function answered(statusCode: number, message: string): Error {
  return Object.assign(new Error(`(HTTP code ${statusCode}) server error - ${message}`), {
    statusCode,
    json: { message },
  });
}

describe('engineError', () => {
  const dial = 'dial unix /run/docker/containerd/containerd.sock: connect: connection refused"';
  it.each([
    `connection error: desc = "transport: Error while dialing ${dial}: unavailable`,
    `Unavailable: connection error: desc = "transport: Error while dialing: ${dial}`,
    'failed to create task for container: Unavailable: error reading from server: connection reset by peer',
    'error reading from server: EOF: unavailable',
    'failed to create task for container: ttrpc: closed: unknown',
    'EOF',
  ])('treats an engine without its containerd as unavailable: %s', (message) => {
    expect(engineError(answered(500, message)).code).toBe('unavailable');
  });

  it.each([
    'OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "EOF": not found: unknown',
    'Get "https://registry.example/v2/": EOF',
    'received unexpected HTTP status: 503 Service Unavailable',
    'The service is unavailable here',
  ])('treats a message of a registry, a program or the engine itself as refused: %s', (message) => {
    expect(engineError(answered(500, message)).code).toBe('refused');
  });
});
