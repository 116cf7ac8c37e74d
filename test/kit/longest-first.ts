/** The order of test files: the longest start first, so that none of them is left alone at the end. */
import { readFileSync } from 'node:fs';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';
import { secondsIn } from './projects.ts';

/** By what the files themselves say, and then by name: every run has the same order. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const timed = files.map((file) => ({ file, seconds: secondsIn(readFileSync(file.moduleId, 'utf8')) }));
    return timed
      .toSorted((a, b) => b.seconds - a.seconds || a.file.moduleId.localeCompare(b.file.moduleId))
      .map(({ file }) => file);
  }
}
