/** Installs the programs that tests call, as far as this machine and its user allow, and removes all others from the PATH. */
import { findProgram } from '../../setup/command.ts';
import { caddyProgram } from '../compose/caddy-program.ts';
import { containedMongo } from '../compose/mongodb-runtime.ts';
import { problem as composeProblem } from '../compose/problem.ts';
import { packBases } from '../applications/bases.ts';
import { packagesOf } from '../applications/packages.ts';
import { installApplicationPackages } from '../kit/packages/application-packages.ts';
import type { AptPackages } from '../kit/packages/apt-packages.ts';
import { installClients } from '../kit/packages/client-packages.ts';
import { installChromium } from '../kit/packages/chromium.ts';
import type { EngineKind } from '../kit/engines/docker-engine.ts';
import { installBusybox, installEngine } from '../kit/packages/docker-packages.ts';
import type { Missing } from '../kit/required.ts';
import { installSharedServers, missingJavaPackages } from '../kit/servers/shared-servers.ts';
import { installJamsocket } from '../kit/packages/jamsocket.ts';
import { installOldestNode } from '../kit/packages/oldest-node.ts';
import { proxyProgram } from '../kit/packages/proxy-programs.ts';
import { installSchemathesis } from '../kit/packages/schemathesis.ts';
import { hasPackages, installTools, linkPrograms, systemPath } from '../kit/packages/test-programs.ts';

/** Why no engine of a kind can be started. */
export type EngineProblems = Readonly<Record<EngineKind, string | undefined>>;

/** Returns why engines cannot start, and adds other problems to `missing`. `programs` is the folder that becomes the PATH. */
export async function installAll(packages: AptPackages, missing: Missing[], programs: string): Promise<EngineProblems> {
  const packaged = await hasPackages();
  const npm = await findProgram('npm');
  if (packaged) process.env['PATH'] = systemPath();
  const tools = await installTools(packages);
  if (tools !== undefined) missing.push({ part: 'tools', what: 'tests that call curl, git or openssl', why: tools });
  const schemathesis = await installSchemathesis(packages);
  if (schemathesis !== undefined) missing.push({ part: 'tools', what: 'the API with schemathesis', why: schemathesis });
  const chromium = await installChromium(packages);
  if (chromium !== undefined) missing.push({ part: 'browser', what: 'pages in Chromium', why: chromium });
  const busybox = await installBusybox(packages);
  const engines = {
    stable: busybox ?? (await installEngine('stable', packages)),
    modern: busybox ?? (await installEngine('modern', packages)),
  };
  for (const why of await installClients(packages)) missing.push({ part: 'clients', ...why });
  const jamsocket = await installJamsocket(npm, packages.terminal);
  if (jamsocket !== undefined) {
    missing.push({ part: 'clients', what: 'the API with the jamsocket command line', why: jamsocket });
  }
  const oldestNode = await installOldestNode(npm, packages.terminal);
  if (oldestNode !== undefined) {
    missing.push({ part: 'clients', what: 'the command line on the oldest Node that it supports', why: oldestNode });
  }
  const applications = await installApplicationPackages(packages, npm, Object.values(packagesOf));
  if (applications !== undefined) {
    missing.push({ part: 'tools', what: 'ordinary applications', why: applications });
  } else {
    await packages.terminal.withProgress('Packing layers for images of applications', packBases);
  }
  for (const name of ['nginx', 'haproxy'] as const) {
    const program = await packages.terminal.withProgress(`Preparing ${name}`, async () => await proxyProgram(name));
    if ('missing' in program) missing.push({ part: 'tools', what: `the proxy beside ${name}`, why: program.missing });
  }
  // `openSharedServers` reports the problem again.
  const problem = await installSharedServers(packages);
  // The stand-in for MongoDB's image contains the protocol server even if other tests use a real MongoDB.
  const java = problem === undefined ? await missingJavaPackages() : [];
  if (java.length > 0) await packages.install('Installing packages of the deployment with docker-compose', java);
  await packages.terminal.withProgress('Building images for the deployment with docker-compose', prepareStandIns);
  if (packaged) {
    await linkPrograms(programs, { node: process.execPath, ...(npm !== undefined && { npm }) });
    process.env['PATH'] = programs;
  }
  return engines;
}

/** Builds and caches the parts of the stand-in images that take longest. Their test reports problems. */
async function prepareStandIns(): Promise<void> {
  if ((await composeProblem()) !== undefined) return;
  await caddyProgram();
  await containedMongo();
}
