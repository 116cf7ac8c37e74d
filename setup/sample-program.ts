/** The program of `sample.ts`: pushes the sample application, and starts its first session. */
import { readFile } from 'node:fs/promises';
import { BerthClient, BerthError } from '../client/index.ts';
import { pushImage } from './push-image.ts';
import { sampleImage } from './sample-image.ts';
import type { SampleLine, SampleTask } from './sample.ts';
import { sampleKey, sampleService } from './summary.ts';

/** A ready backend listens already, so its first answer should take milliseconds. */
const firstAnswerTimeoutMs = 10_000;

const [task] = process.argv.slice(2);
if (task === undefined) throw new Error('Usage: sample-program.ts TASK, a SampleTask as JSON');
await run(JSON.parse(task) as SampleTask).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});

async function run({ apiUrl, registry, proxyUrl, account, tokenFile, dockerHost, isMounted }: SampleTask) {
  const client = new BerthClient({ url: apiUrl, token: (await readFile(tokenFile, 'utf8')).trim() });
  const service = `${account}/${sampleService}`;
  await client.createService(service).catch((error: unknown) => {
    if (!(error instanceof BerthError && error.code === 'ServiceExists')) throw error;
  });
  const image = await sampleImage('berth-sample/pad:latest');
  const target = `${registry}/${service}:latest`;
  await pushImage({ dockerHost, image, target, account, tokenFile, onStep: (step) => print({ step }) });
  const mount = isMounted ? { spawn: { executable: { mount: true as const } } } : {};
  const session = await client.connect(service, { key: sampleKey, ...mount });
  for await (const { status } of client.statuses(session.backend_id)) {
    print({ step: status });
    if (status === 'ready') break;
    if (status === 'terminated') throw new Error(`The session ended before it was ready, see ${session.status_url}`);
  }
  // The path form works everywhere. On some systems, only browsers resolve names below `localhost`.
  const plainUrl = `${proxyUrl}/${session.token}/`;
  await fetchPage(plainUrl);
  print({ urls: { url: session.url, plainUrl } });
}

/** Requests the page at a connection URL, as a browser would. */
async function fetchPage(url: string): Promise<void> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(firstAnswerTimeoutMs) });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`${answer.status} from the session's URL (${answer.headers.get('x-berth-error')})`);
}

function print(line: SampleLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
