/** Tiny images for stories: a static busybox and a script, 2 MB, which start within milliseconds. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Image, LayerEntry } from '../../../setup/image.ts';
import { pushImage } from '../../../setup/push-image.ts';
import { temporaryFolder } from '../machine/temporary-folder.ts';
import { staticBusybox } from '../packages/docker-packages.ts';
import type { TestEngine } from './docker-engine.ts';

/**
 * How a test backend behaves:
 * `serve` answers HTTP and exits on SIGTERM; `stubborn` answers and ignores SIGTERM; `deaf` never listens; `failing` logs a reason
 * and exits with 1; `greedy` allocates half a gigabyte of memory after a request of `cgi-bin/allocate`; `record` ignores SIGTERM and
 * writes the time of day, in seconds, every ten milliseconds into a file of its mount that is named for its fencing token.
 */
export type Behaviour = 'serve' | 'stubborn' | 'deaf' | 'failing' | 'greedy' | 'record';

const script = `#!/bin/sh
case "$1" in
  serve)
    echo 'serving'
    trap 'echo bye; kill $server; exit 0' TERM
    httpd -f -p "$PORT" -h /www &
    server=$!
    wait $server
    ;;
  stubborn)
    trap '' TERM
    exec httpd -f -p "$PORT" -h /www
    ;;
  deaf) exec sleep 86400 ;;
  failing)
    echo 'This backend cannot go on' >&2
    exit 1
    ;;
  greedy)
    httpd -p "$PORT" -h /www
    until [ -e /tmp/allocate ]; do sleep 0.1; done
    exec dd if=/dev/zero of=/dev/null bs=512M count=100
    ;;
  record)
    trap '' TERM
    mkfifo /tmp/pace
    exec 3<>/tmp/pace
    httpd -p "$PORT" -h /www
    while :; do
      echo "$EPOCHREALTIME"
      read -t 0.01 -r _ <&3
    done > "/data/$SESSION_BACKEND_FENCING_TOKEN"
    ;;
esac
`;

const page = '<!doctype html><title>A test backend</title><p>Hello from a test backend\n';

/** `cgi-bin/slow?5` sends a line per second, five times. */
const slowCgi = `#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n'
i=0
while [ $i -lt "\${QUERY_STRING:-10}" ]; do
  i=$((i + 1))
  echo "line $i"
  sleep 1
done
`;

/** `cgi-bin/env` returns the request headers as HTTP_..., and the container's variables. */
const envCgi = `#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n'
env
`;

/** `cgi-bin/say?words` logs the words. */
const sayCgi = `#!/bin/sh
echo "$QUERY_STRING" >&2
printf 'Content-Type: text/plain\\r\\n\\r\\n'
`;

/** `cgi-bin/flood?bytes` logs this number of bytes, in lines of 1,000. */
const floodCgi = `#!/bin/sh
yes ${'0123456789'.repeat(100).slice(1)} | head -c "$QUERY_STRING" >&2
printf 'Content-Type: text/plain\\r\\n\\r\\n'
`;

/** `cgi-bin/allocate` lets a `greedy` backend allocate. */
const allocateCgi = `#!/bin/sh
: > /tmp/allocate
printf 'Content-Type: text/plain\\r\\n\\r\\n'
`;

const applets = ['sh', 'httpd', 'nc', 'sleep', 'dd', 'env', 'printf', 'echo', 'kill', 'yes', 'head', 'mkfifo'];

/** A test image of a behaviour. Each `variant` is a different image. */
export async function testImage(behaviour: Behaviour, variant = ''): Promise<Image> {
  const busybox = await staticBusybox();
  if (busybox === undefined) throw new Error('Install busybox-static: the test images contain it');
  const base: LayerEntry[] = [
    { path: '/bin/busybox', file: busybox, mode: 0o755 },
    ...applets.map((name) => ({ path: `/bin/${name}`, link: 'busybox' })),
    { path: '/tmp', folder: true, mode: 0o1777 },
  ];
  const own: LayerEntry[] = [
    { path: '/bin/behave', text: script, mode: 0o755 },
    { path: '/www/index.html', text: page },
    { path: '/www/cgi-bin/slow', text: slowCgi, mode: 0o755 },
    { path: '/www/cgi-bin/say', text: sayCgi, mode: 0o755 },
    { path: '/www/cgi-bin/flood', text: floodCgi, mode: 0o755 },
    { path: '/www/cgi-bin/env', text: envCgi, mode: 0o755 },
    { path: '/www/cgi-bin/allocate', text: allocateCgi, mode: 0o755 },
  ];
  return {
    tag: `berth-test/${behaviour}:${variant || 'latest'}`,
    layers: [base, own],
    config: {
      Cmd: ['/bin/behave', behaviour],
      Env: ['PATH=/bin', ...(variant ? [`VARIANT=${variant}`] : [])],
      ExposedPorts: { '8080/tcp': {} },
    },
  };
}

/** The account and registry of a push. */
export interface PushTarget {
  readonly registry: string;
  readonly account: string;
  readonly token: string;
  /** Default: the registry speaks plain HTTP. */
  readonly apiUrl?: string;
}

/** Pushes an image with the real docker command as `<account>/<service>:<tag>`, and returns its digest. */
export async function pushTestImage(
  engine: TestEngine,
  { registry, account, token }: PushTarget,
  options: { image: Image; service: string; tag?: string },
): Promise<string> {
  await using folder = await temporaryFolder();
  const tokenFile = join(folder.path, 'token');
  await writeFile(tokenFile, token, { mode: 0o600 });
  const target = `${registry}/${account}/${options.service}:${options.tag ?? 'latest'}`;
  return await pushImage({ dockerHost: engine.host, image: options.image, target, account, tokenFile });
}
