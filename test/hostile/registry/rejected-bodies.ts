/** Clients that continue to send a body after the request was rejected. */
import { expect, test } from 'vitest';
import type { Fixture } from '../fixture.ts';

const chunkOf = (bytes: Buffer) =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);

const part = Buffer.from('--cut\r\nContent-Disposition: form-data; name="archive"; filename="x"\r\n\r\n');

export function declareRejectedBodies(fixture: Fixture): void {
  test.each([
    ['manifest', 'PUT /v2/home/none/manifests/v1', 'application/vnd.oci.image.manifest.v1+json', 413],
    ['archive', 'POST /v2/service/home/none/images', 'application/x-tar', 400],
    ['form', 'POST /v2/service/home/none/images', 'multipart/form-data; boundary=cut', 400],
  ])(
    'an endless %s is rejected with a complete response, and its sender is disconnected',
    async (_what, requestLine, type, status) => {
      const isArchive = requestLine.startsWith('POST');
      const port = Number((isArchive ? fixture.platform.apiUrl : fixture.platform.registry).split(':').at(-1));
      const authorization = isArchive ? `Bearer ${fixture.platform.token}` : fixture.authorization;
      const connection = await fixture.connect(port);
      const head = [
        `${requestLine} HTTP/1.1`,
        'host: berth',
        `authorization: ${authorization}`,
        `content-type: ${type}`,
      ];
      connection.write([...head, 'transfer-encoding: chunked', '', ''].join('\r\n'));
      if (type.startsWith('multipart')) connection.write(chunkOf(part));
      connection.flood(chunkOf(Buffer.alloc(65_536, 'no tar')));
      const answer = await connection.rest();
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*connection: close[^]*"message":"[^]*}$`, 'i'));
    },
  );
}
