/** The order of test files: the longest start first, so that no long file runs alone at the end. */
import { readFileSync } from 'node:fs';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';
import { secondsIn } from './projects.ts';

/**
 * One project after another, because a vitest worker runs the next file only if it belongs to the same project. A new worker costs
 * a second of CPU time. Projects with short files are last.
 */
const projects = ['e2e', 'docker', 'docker-other', 'drivers', 'drivers-apart'];

/** Sorts by the durations that files declare, and then by name, so that every run has the same order. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const timed = files.map((file) => ({
      file,
      project: projects.indexOf(file.project.name),
      seconds: secondsIn(readFileSync(file.moduleId, 'utf8')),
    }));
    return timed
      .toSorted(
        (a, b) => a.project - b.project || b.seconds - a.seconds || a.file.moduleId.localeCompare(b.file.moduleId),
      )
      .map(({ file }) => file);
  }
}
