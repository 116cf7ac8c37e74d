/** Names, digests and session IDs that try to reach other content. Sent on raw sockets, because HTTP clients normalize paths. */
import { expect, test } from 'vitest';
import { sha256 } from '../../kit/registry/registry.ts';
import { statusAndCode } from '../fixture.ts';
import type { Fixture } from '../fixture.ts';

const digest = sha256('still here');

export function declarePaths(fixture: Fixture): void {
  test('rejects path traversal, encoded separators and overlong names', async () => {
    const attempts: [string, number, string][] = [
      [`/v2/..%2f..%2fetc/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/home/../control/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/home/%2e%2e/home/control/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/home/control%00/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/home/control%0d%0ax:y/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/home%2fwitness/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/home/contr%c3%b4l/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/home//control/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`//v2/home/control/blobs/${digest}`, 404, 'UNSUPPORTED'],
      [`/v2/./home/control/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/home/control/./blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/Home/Control/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/home/control\\..\\x/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/${'a'.repeat(256)}/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/${'a/'.repeat(4_000)}a/blobs/${digest}`, 400, 'NAME_INVALID'],
      [`/v2/home/control/blobs/${digest}/../../../x`, 404, 'UNSUPPORTED'],
      ['/v2/home/control/blobs/sha256:../../secret', 404, 'UNSUPPORTED'],
      ['/v2/home/control/blobs/sha256:..%2f..%2fsecret', 400, 'DIGEST_INVALID'],
      [`/v2/home/control/blobs/sha256:${digest.slice(7).toUpperCase()}`, 400, 'DIGEST_INVALID'],
      [`/v2/home/control/blobs/${digest}%00`, 400, 'DIGEST_INVALID'],
      [`/v2/home/control/blobs/${digest}0`, 400, 'DIGEST_INVALID'],
      [`/v2/home/control/blobs/${digest.slice(0, -1)}`, 400, 'DIGEST_INVALID'],
      [`/v2/home/control/blobs/md5:${'a'.repeat(32)}`, 400, 'DIGEST_INVALID'],
      [`/v2/home/control/blobs/${digest}:${digest}`, 400, 'DIGEST_INVALID'],
      [`/v2/home/control/manifests/sha256:..%2fx`, 400, 'DIGEST_INVALID'],
      ['/v2/home/control/manifests/..', 404, 'MANIFEST_UNKNOWN'],
      ['/v2/home/control/manifests/%2e%2e%2fblobs', 404, 'MANIFEST_UNKNOWN'],
      ['/v2/home/control/manifests/__proto__', 404, 'NAME_UNKNOWN'],
      ['/v2/home/constructor/manifests/latest', 404, 'NAME_UNKNOWN'],
      ['/v2/home/control/blobs/uploads/..', 404, 'BLOB_UPLOAD_UNKNOWN'],
      ['/v2/home/control/blobs/uploads/%2e%2e%2f%2e%2e%2fstore', 404, 'BLOB_UPLOAD_UNKNOWN'],
      ['/v2/home/control/blobs/uploads/00000000-0000-4000-8000-00000000000G', 404, 'BLOB_UPLOAD_UNKNOWN'],
      ['/v2/home/control/referrers/sha256:..%2f', 400, 'DIGEST_INVALID'],
    ];
    for (const [target, status, code] of attempts) {
      const answer = await fixture.raw(`GET ${target} HTTP/1.1`);
      expect([target.slice(0, 80), ...statusAndCode(answer)]).toEqual([target.slice(0, 80), status, code]);
      expect(answer).toContain('content-type: application/json');
    }
  });

  test('an upload session cannot be reached through another repository', async () => {
    const location = await fixture.begin('home/theirs');
    const otherPath = location.replace('home/theirs', 'home/mine');
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      expect((await fixture.send(otherPath, { method })).code).toBe('BLOB_UPLOAD_UNKNOWN');
    }
    expect((await fixture.send(location, { method: 'DELETE' })).status).toBe(204);
  });
}
