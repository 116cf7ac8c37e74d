import { tmpdir } from 'node:os';

/** The variable with the folder of temporary files on a disk, if `npm test` keeps them in memory. */
export const diskFolderVariable = 'BERTH_TEST_DISK_FOLDER';

/** A folder for temporary files on a disk, for tests that need more than a file system in memory. */
export function diskFolder(): string {
  return process.env[diskFolderVariable] ?? tmpdir();
}
