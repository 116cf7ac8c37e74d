/** Packs and pushes the sample application: `push-sample.ts TARGET ACCOUNT TOKEN-FILE`. Prints a line for each step. */
import { pushImage } from './push-image.ts';
import { sampleImage } from './sample-image.ts';

const [target, account, tokenFile] = process.argv.slice(2);
const dockerHost = process.env['DOCKER_HOST'];
if (!target || !account || !tokenFile || !dockerHost)
  throw new Error('Usage: push-sample.ts TARGET ACCOUNT TOKEN-FILE, with DOCKER_HOST');

const image = await sampleImage('berth-sample/pad:latest');
const onStep = (words: string) => void process.stdout.write(`${words}\n`);
await pushImage({ dockerHost, image, target, account, tokenFile, onStep });
