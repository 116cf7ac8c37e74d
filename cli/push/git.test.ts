import { expect, test } from 'vitest';
import { remoteOf } from './git.ts';

test.each([
  ['https://github.com/acme/whiteboard.git', 'acme/whiteboard', 'https://github.com/acme/whiteboard'],
  ['https://ada:secret@github.com/acme/whiteboard', 'acme/whiteboard', 'https://github.com/acme/whiteboard'],
  ['http://git.example:3000/acme/whiteboard', 'acme/whiteboard', 'http://git.example:3000/acme/whiteboard'],
  ['git@github.com:acme/whiteboard.git', 'acme/whiteboard', 'https://github.com/acme/whiteboard'],
  [
    'ssh://git@git.example:2222/team/sub/whiteboard.git/',
    'team/sub/whiteboard',
    'https://git.example/team/sub/whiteboard',
  ],
])('the repository of the remote %s is %s, its source %s', (remote, repository, source) => {
  expect(remoteOf(remote)).toEqual({ repository, source });
});

test.each(['/srv/git/whiteboard.git', 'file:///srv/git/whiteboard.git', '../whiteboard'])(
  'the remote %s is a path of this machine',
  (remote) => {
    expect(remoteOf(remote)).toBeUndefined();
  },
);
