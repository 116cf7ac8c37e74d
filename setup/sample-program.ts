/** The program of `sample.ts`: pushes the sample application, and starts its first session. */
import { readFile } from 'node:fs/promises';
import { connect, ensureService, fetchPage, untilReady } from './first-session.ts';
import { pushImage } from './push-image.ts';
import { sampleImage } from './sample-image.ts';
import type { SampleLine, SampleTask } from './sample.ts';
import { sampleKey, sampleService } from './summary.ts';

const [task] = process.argv.slice(2);
if (task === undefined) throw new Error('Usage: sample-program.ts TASK, a SampleTask as JSON');
await run(JSON.parse(task) as SampleTask).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});

async function run({ apiUrl, registry, proxyUrl, account, tokenFile, dockerHost, isMounted }: SampleTask) {
  const caller = { apiUrl, token: (await readFile(tokenFile, 'utf8')).trim() };
  await ensureService(caller, account, sampleService);
  const image = await sampleImage('berth-sample/pad:latest');
  const target = `${registry}/${account}/${sampleService}:latest`;
  await pushImage({ dockerHost, image, target, account, tokenFile, onStep: (step) => print({ step }) });
  const mount = isMounted ? { spawn: { executable: { mount: true as const } } } : {};
  const session = await connect(caller, `${account}/${sampleService}`, { key: sampleKey, ...mount });
  await untilReady(session, (step) => print({ step }));
  // Some systems do not resolve names below `localhost`, apart from browsers: the path form works everywhere.
  const plainUrl = `${proxyUrl}/${session.token}/`;
  await fetchPage(plainUrl);
  print({ urls: { url: session.url, plainUrl } });
}

function print(line: SampleLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
