import { expect, test } from 'vitest';
import { containerSecurity } from './container-security.ts';

const image = { user: '', volumes: [] };

test('the profiles "default" and "none" differ in their capabilities', () => {
  expect(containerSecurity('default', image, ['CHOWN'])).toEqual({ capabilities: ['CHOWN'] });
  expect(containerSecurity('none', image, ['CHOWN'])).toEqual({ capabilities: [] });
});

test.each(['', 'root', '0', '0:0', 'root:wheel', '00', ':5'])(
  'the profile "root-less" replaces the user "%s"',
  (user) => {
    expect(containerSecurity('root-less', { ...image, user }, ['CHOWN'])).toEqual({
      capabilities: [],
      readOnlyRoot: true,
      memoryFolders: { paths: ['/tmp', '/run', '/var/tmp'], owner: { uid: 65534, gid: 65534 } },
      user: '65534:65534',
    });
  },
);

test.each(['node', '1000', '1000:0', 'nobody:nogroup', '10'])('the profile "root-less" keeps the user "%s"', (user) => {
  expect(containerSecurity('root-less', { ...image, user }, []).user).toBe(user);
});

test('the profile "root-less" leaves the volumes of an image alone', () => {
  const { memoryFolders } = containerSecurity('root-less', { user: 'node', volumes: ['/tmp', '/data'] }, []);
  expect(memoryFolders).toEqual({ paths: ['/run', '/var/tmp'] });
});
