import { expect, test } from 'vitest';
import { runProgram } from './program-runner.ts';

test('a missing folder is not reported as a missing program', async () => {
  const options = { env: { PATH: '/usr/bin:/bin' }, signal: new AbortController().signal };
  await expect(runProgram('ls', [], { ...options, cwd: '/no/such/folder' })).rejects.toMatchObject({
    code: 'NoFolder',
    message: 'There is no folder /no/such/folder',
  });
  await expect(runProgram('no-such-program', [], options)).rejects.toMatchObject({ code: 'ProgramMissing' });
});
