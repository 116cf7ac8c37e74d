import { expect, test } from 'vitest';
import { commitLabels, repositoryOf } from './git.ts';

test.each([
  ['https://github.com/acme/whiteboard.git', 'acme/whiteboard'],
  ['https://ada:secret@github.com/acme/whiteboard', 'acme/whiteboard'],
  ['git@github.com:acme/whiteboard.git', 'acme/whiteboard'],
  ['ssh://git@git.example:2222/team/sub/whiteboard.git/', 'team/sub/whiteboard'],
  ['/srv/git/whiteboard.git', undefined],
])('the repository of the remote %s is %s', (remote, repository) => {
  expect(repositoryOf(remote)).toBe(repository);
});

test('without a branch and a remote, a commit has no labels for them', () => {
  const labels = commitLabels({ hash: 'abc', message: 'First', branch: undefined, repository: undefined });
  expect(labels).toEqual({ hash: 'abc', message: 'First', 'org.opencontainers.image.revision': 'abc' });
});
