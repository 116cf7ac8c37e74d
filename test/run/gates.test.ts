import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../kit/machine/temporary-folder.ts';
import { runGates } from './gates.ts';

/** Runs gates. Returns the names of the failed ones, and the printed text without the times. */
async function run(gates: Record<string, string>, concurrency: number) {
  let printed = '';
  const failed = await runGates({ gates, concurrency, print: (text) => (printed += text) });
  return { failed, printed: printed.replaceAll(/ \(\d+\.\d s\)/g, '') };
}

test('all gates run, and the output of failed gates is printed', async () => {
  const missing = join(tmpdir(), 'no-such-file');
  const { failed, printed } = await run({ one: `cat ${missing}`, two: 'echo hidden', three: 'no-such-gate' }, 1);
  expect(failed).toEqual(['one', 'three']);
  expect(printed.split('\n')).toEqual([
    '✗ one',
    expect.stringContaining(missing),
    '✓ two',
    '✗ three',
    'There is no program "no-such-gate" here',
  ]);
});

test('gates run at the same time, and are printed in the order of the list', async () => {
  await using folder = await temporaryFolder();
  const pipe = join(folder.path, 'pipe');
  await run({ pipe: `mkfifo ${pipe}` }, 1);
  // The reader ends only because the writer writes, and the third gate ends before both.
  expect(await run({ reader: `cat ${pipe}`, writer: `cp package.json ${pipe}`, other: 'true' }, 3)).toEqual({
    failed: [],
    printed: '✓ reader\n✓ writer\n✓ other\n',
  });
});
