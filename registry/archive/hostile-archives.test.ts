/** Archives with paths or links that lead out of the archive or in circles. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { savedOf } from '../../test/kit/registry/archives.ts';
import type { TestEntry } from '../../test/kit/registry/archives.ts';
import { openArchiveFixture, errorOf, sendEntries } from '../testing/archive-fixture.ts';
import type { ArchiveFixture } from '../testing/archive-fixture.ts';

let fixture: ArchiveFixture;
beforeEach(async () => void (fixture = await openArchiveFixture()));
afterEach(async () => await fixture[Symbol.asyncDispose]());

describe('rejects', () => {
  test.each<[string, TestEntry | TestEntry[], RegExp]>([
    ['a name that leads out', { name: '../x', content: 'x' }, /leads out of it/],
    ['a name that leads out later', { name: 'a/../../x', content: 'x' }, /leads out of it/],
    ['an absolute name', { name: '/etc/passwd', content: 'x' }, /leads out of it/],
    ['a link that leads out', { name: 'x', type: 'symlink', linkname: '../../etc/passwd' }, /leads out of it/],
    ['a link to the folder above', { name: 'x', type: 'symlink', linkname: '..' }, /leads out of it/],
    ['an absolute link', { name: 'x', type: 'symlink', linkname: '/etc/passwd' }, /has a link that points out of it/],
    ['a hard link that leads out', { name: 'x', type: 'link', linkname: '../x' }, /leads out of it/],
    ['a device', { name: 'x', type: 'character-device', devmajor: 1, devminor: 3 }, /neither file, folder nor link/],
    ['a pipe', { name: 'x', type: 'fifo' }, /neither file, folder nor link/],
    ['a sparse file', { name: 'x', content: 'x', pax: { 'GNU.sparse.major': '1' } }, /sparse/],
    ['two entries of one name', [{ name: 'x' }, { name: './x' }], /two entries named "x"/],
    ['a name that is too long', { name: `${'x'.repeat(99)}/`.repeat(30), content: 'x' }, /name is too long/],
  ])('%s', async (_what, entry, message) => {
    const url = await fixture.open();
    expect(await errorOf(fixture, await sendEntries(url, [...savedOf(['x']), ...[entry].flat()]))).toMatch(message);
  });

  test('links in circles', async () => {
    const url = await fixture.open();
    const circle: TestEntry[] = [
      { name: 'a', type: 'symlink', linkname: 'b' },
      { name: 'b', type: 'symlink', linkname: 'a' },
      { name: 'manifest.json', content: '[{"Config":"a"}]' },
    ];
    expect(await errorOf(fixture, await sendEntries(url, circle))).toMatch(/has a chain of more than \d+ links/);
  });
});
