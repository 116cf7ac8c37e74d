/** The process in the container: opens the pad on PORT, and saves it on SIGTERM. */
/* oxlint-disable no-console -- what a backend writes to its standard output is its log */
import { openPad } from './app.js';
import { chooseFolder } from './saved-drawing.js';

const {
  PORT = '8080',
  SESSION_BACKEND_ID,
  SESSION_BACKEND_KEY,
  SESSION_BACKEND_FENCING_TOKEN,
  PAD_FOLDER,
} = process.env;

const pad = await openPad({
  port: Number(PORT),
  folder: await chooseFolder(PAD_FOLDER),
  backend: SESSION_BACKEND_ID ?? 'local',
  key: SESSION_BACKEND_KEY ?? null,
  fencingToken: SESSION_BACKEND_FENCING_TOKEN ? Number(SESSION_BACKEND_FENCING_TOKEN) : null,
  log: (...values) => console.log(...values),
});
console.log(`The pad listens on port ${pad.port}, and keeps its drawing in ${pad.folder}`);

let ending = false;
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void end(signal));

async function end(signal) {
  if (ending) return;
  ending = true;
  console.log(`${signal}: saving and ending`);
  await pad.close();
  process.exit(0);
}
