import { expect, test } from 'vitest';
import { IgnoreRules } from './ignore-rules.ts';

test.each([
  ['node_modules', 'node_modules', true],
  ['node_modules', 'node_modules/a/b.js', true],
  // Patterns are relative to the context, unlike in .gitignore.
  ['node_modules', 'packages/node_modules/b.js', false],
  ['**/node_modules', 'packages/node_modules/b.js', true],
  ['**/node_modules', 'node_modules', true],
  ['*.md', 'README.md', true],
  ['*.md', 'docs/page.md', false],
  ['*/*.md', 'docs/page.md', true],
  ['**/*.md', 'docs/deep/page.md', true],
  ['docs/**', 'docs/deep/page.md', true],
  ['docs/**', 'docs', false],
  ['/dist/', 'dist/a.js', true],
  ['./dist', 'dist/a.js', true],
  ['a/../dist', 'dist', true],
  ['temp?', 'temp1', true],
  ['temp?', 'temp', false],
  ['temp[ab]', 'tempb', true],
  ['temp[ab]', 'tempc', false],
  [String.raw`a\*`, 'a*', true],
  [String.raw`a\*`, 'ab', false],
  ['a.b', 'axb', false],
  ['a+(b)', 'a+(b)', true],
  ['# dist', '# dist', false],
  ['', 'dist', false],
  ['.', 'dist', false],
  ['*.md\n!README.md', 'README.md', false],
  ['*.md\n!README.md', 'other.md', true],
  ['!README.md\n*.md', 'README.md', true],
  ['docs\n!docs/kept', 'docs/kept/page', false],
  ['docs\n!docs/kept', 'docs/other', true],
  ['*\r\n!src\r\n', 'src/index.ts', false],
  ['*\n!src', 'index.ts', true],
  ['\uFEFFdist', 'dist', true],
])('%j on %s: %s', (text, path, ignored) => {
  expect(new IgnoreRules(text).ignores(path)).toBe(ignored);
});

test.each([
  ['docs', 'docs', true],
  ['docs\n!docs/kept', 'docs', false],
  ['docs\n!docs/kept/**', 'docs/kept', false],
  ['docs\n!docs/kept', 'docs/other', true],
  ['docs\n!**/*.md', 'docs', false],
  ['docs\n!src', 'docs', true],
  ['*.md', 'docs', false],
])('%j: whether everything below %s is ignored: %s', (text, folder, ignored) => {
  expect(new IgnoreRules(text).ignoresAllBelow(folder)).toBe(ignored);
});
