import { expect, test } from 'vitest';
import { commitLabels } from './commit-labels.ts';

test('a commit has the labels that the registry reads, and those of OCI', () => {
  const source = 'https://git.example.com/acme/draw';
  expect(commitLabels({ hash: 'abc', branch: 'main', message: 'First', repository: 'acme/draw', source })).toEqual({
    hash: 'abc',
    branch: 'main',
    repository: 'acme/draw',
    message: 'First',
    'org.opencontainers.image.revision': 'abc',
    'org.opencontainers.image.ref.name': 'main',
    'org.opencontainers.image.source': source,
  });
});

test('unknown and empty values have no label', () => {
  const labels = commitLabels({ hash: 'abc', message: '', branch: undefined, repository: '' });
  expect(labels).toEqual({ hash: 'abc', 'org.opencontainers.image.revision': 'abc' });
});
