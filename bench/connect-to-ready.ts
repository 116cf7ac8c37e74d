/** Time from connect to `ready`, compared with `docker run` of the same image on the same network up to the first TCP connect. */
import { connect as openSocket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { runCommand } from '../setup/command.ts';
import { connect, terminate, waitFor } from '../test/kit/platform/api-client.ts';
import type { TestEngine } from '../test/kit/engines/docker-engine.ts';
import { pushTestImage, testImage } from '../test/kit/engines/images.ts';
import type { TestPlatform } from '../test/kit/platform/platform.ts';
import { inTurn, median, pairsRow, quantile } from './measurements.ts';
import type { Row } from './measurements.ts';

const rounds = 20;

/** Pause between two measurements, so that the end of one container does not slow down the start of the next. */
const restMs = 300;

/** Measures both in turn, after a warm-up round. */
export async function connectToReady(platform: TestPlatform, engine: TestEngine): Promise<Row> {
  const image = await testImage('serve');
  await pushTestImage(engine, platform, { image, service: 'serve' });
  const peer = await dockerPeer(platform, engine, image.tag);
  const pairs = await inTurn({ warmUps: 1, rounds }, async () => await timeConnect(platform), peer);
  const what = `connect → ready / docker run + TCP connect (Docker ${engine.version})`;
  return pairsRow(what, pairs, { show: describe, aim: '≤ 1.10 ×' });
}

async function timeConnect(platform: TestPlatform): Promise<number> {
  const startedMs = performance.now();
  const { backend_id: id } = await connect(platform, 'serve');
  await waitFor(platform, id, 'ready');
  const tookMs = performance.now() - startedMs;
  await terminate(platform, id, true);
  await waitFor(platform, id, 'terminated');
  await delay(restMs);
  return tookMs;
}

async function dockerPeer(platform: TestPlatform, engine: TestEngine, tag: string): Promise<() => Promise<number>> {
  const network = `berth-${platform.node}`;
  const at = { env: { DOCKER_HOST: engine.host } };
  const subnet = await runCommand(
    'docker',
    ['network', 'inspect', '--format', '{{(index .IPAM.Config 0).Subnet}}', network],
    at,
  );
  const address = lastAddressButOne(subnet.trim());
  return async () => {
    const startedMs = performance.now();
    const args = ['run', '--detach', '--network', network, '--ip', address, '--env', 'PORT=8080', tag];
    const container = (await runCommand('docker', args, at)).trim();
    await firstConnect(address, 8080);
    const tookMs = performance.now() - startedMs;
    await runCommand('docker', ['rm', '--force', container], at);
    await delay(restMs);
    return tookMs;
  };
}

/** An address that the worker hardly ever assigns: it starts at a random address and skips used ones. */
function lastAddressButOne(subnet: string): string {
  const [base = '', bits = '24'] = subnet.split('/');
  const value = base.split('.').reduce((sum, part) => sum * 256 + Number(part), 0) + 2 ** (32 - Number(bits)) - 2;
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}

async function firstConnect(host: string, port: number): Promise<void> {
  for (;;) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = openSocket({ host, port });
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
      socket.once('close', () => socket.destroy());
    });
    if (isOpen) return;
    await delay(1);
  }
}

function describe(values: readonly number[]): string {
  return `${median(values).toFixed(0)} ms (p90 ${quantile(values, 0.9).toFixed(0)})`;
}
