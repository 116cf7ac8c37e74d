/**
 * The projects of the tests. A test file belongs to the project of the first row that matches: by its folder, by its imports, and
 * by the duration that it declares in a line `// Takes about 40 s`. A file of the project `docker` runs on the
 * first engine; one with the line `// Runs on every engine` runs on the other one too, as a file of `docker-other`. Files share
 * processes; a file of `drivers` with the line `// Runs in a process of its own` does not, as a file of `drivers-apart`.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export type ProjectName = 'unit' | 'drivers' | 'docker' | 'e2e';

interface Row {
  readonly project: ProjectName;
  readonly path?: RegExp;
  readonly imports?: RegExp;
  readonly minSeconds?: number;
}

const rows: readonly Row[] = [
  // Crosses components.
  { project: 'e2e', path: /^test\/(?!kit\/|run\/|[^/]+$)/ },
  // Runs containers.
  { project: 'docker', path: /^worker\//, imports: /\/testing\// },
  { project: 'docker', imports: /\/kit\/engines\/engines\.ts$/ },
  { project: 'docker', path: /\/docker-engine\.test\.ts$/ },
  // Runs MongoDB, Redis or Chromium, or mounts a small disk, which only root may.
  { project: 'drivers', imports: /\/kit\/(?:servers\/|browser\/|machine\/small-disk)/ },
  // All units together take at most 20 seconds on two cores.
  { project: 'drivers', minSeconds: 3 },
];

const root = join(import.meta.dirname, '../..');

const exclude = ['node_modules', '.berth', '.git'];
const testFiles = globSync('**/*.test.ts', { cwd: root, exclude }).map((file) => ({
  file,
  text: readFileSync(join(root, file), 'utf8'),
}));

/** The test files of a project. */
export function filesOf(project: ProjectName): string[] {
  return testFiles.flatMap(({ file, text }) => (projectOf(file, text) === project && !isApart(text) ? file : []));
}

/** The test files of `drivers` that change their process. */
export function filesApart(): string[] {
  return testFiles.flatMap(({ file, text }) => (isApart(text) ? file : []));
}

/** The test files of `docker` in which the release of the engine matters. */
export function filesForEveryEngine(): string[] {
  return testFiles.flatMap(({ file, text }) => (/^\/\/ Runs on every engine$/m.test(text) ? file : []));
}

/** The duration that a test file declares, in seconds; 0 if it declares none because it takes a few seconds. */
export function secondsIn(text: string): number {
  return Number(/^\/\/ Takes about (\d+) s\b/m.exec(text)?.[1] ?? 0);
}

function isApart(text: string): boolean {
  return /^\/\/ Runs in a process of its own$/m.test(text);
}

function projectOf(file: string, text: string): ProjectName {
  const imported = Array.from(text.matchAll(/^import [^;]*? from '([^']+)'/gm), ([, path = '']) => path);
  const row = rows.find(
    ({ path, imports, minSeconds = 0 }) =>
      (!path || path.test(file)) &&
      (!imports || imported.some((path) => imports.test(path))) &&
      secondsIn(text) >= minSeconds,
  );
  return row?.project ?? 'unit';
}
