// Takes about 10 s
/** end-12, and the subject of end-7: the referrers of a manifest. */
import { expect, test } from 'vitest';
import type { Answer } from '../kit/registry/registry.ts';
import { sha256, sha512 } from '../kit/registry/registry.ts';
import { json, nextOf, onAllRegistries, types } from './fixture.ts';
import type { Descriptor, Document, Repository } from './fixture.ts';

interface Index {
  readonly schemaVersion: number;
  readonly mediaType: string;
  readonly manifests: Descriptor[];
}

const indexOf = (answer: Answer) => json(answer) as Index;

const sbom = 'application/vnd.example.sbom.v1';
const signature = 'application/vnd.example.signature.v1';

onAllRegistries((fixture) => {
  async function list(repository: Repository, digest: string, query = ''): Promise<Descriptor[] & { answer: Answer }> {
    const answer = await repository.send(`referrers/${digest}${query}`);
    expect([answer.status, answer.headers['content-type']]).toEqual([200, types.index]);
    const { schemaVersion, mediaType, manifests } = indexOf(answer);
    expect([schemaVersion, mediaType]).toEqual([2, types.index]);
    return Object.assign(manifests, { answer });
  }

  const digests = (descriptors: readonly Descriptor[]) => descriptors.map(({ digest }) => digest).toSorted();

  /** Pushes artifacts, an image and indexes that refer to a subject, and returns the descriptors that must be listed. */
  async function refer(repository: Repository, subject: Descriptor): Promise<Descriptor[]> {
    const annotations = { 'org.example.$dots.and': 'kept', constructor: 'x' };
    const expected: Descriptor[] = [];
    const push = async (document: Document, listed: object) => {
      const pushed = await repository.put(sha256(JSON.stringify(document)), document);
      expect([pushed.status, pushed.headers['oci-subject']]).toEqual([201, subject.digest]);
      const body = JSON.stringify(document);
      expected.push({ mediaType: String(document.mediaType), digest: sha256(body), size: body.length, ...listed });
    };
    await push(await repository.image({ subject, artifactType: sbom, annotations }), {
      artifactType: sbom,
      annotations,
    });
    await push(await repository.image({ subject, artifactType: signature }), { artifactType: signature });
    await push(await repository.image({ subject, artifactType: '' }), { artifactType: types.config });
    await push(
      { schemaVersion: 2, mediaType: types.index, manifests: [], subject, artifactType: sbom },
      { artifactType: sbom },
    );
    await push({ schemaVersion: 2, mediaType: types.index, manifests: [], subject }, {});
    return expected.toSorted((a, b) => (a.digest < b.digest ? -1 : 1));
  }

  test('lists referrers of an existing subject, and of a subject that is pushed later', async () => {
    for (const subjectFirst of [true, false]) {
      const repository = fixture.repository();
      const image = await repository.image({ annotations: { subjectFirst: String(subjectFirst) } });
      const body = JSON.stringify(image);
      const subject = { mediaType: types.image, digest: sha256(body), size: body.length };
      if (subjectFirst) await repository.put('subject', image);
      const expected = await refer(repository, subject);
      if (!subjectFirst) await repository.put('subject', image);
      expect([...(await list(repository, subject.digest))]).toEqual(expected);
    }
  });

  test('filters by artifact type', async () => {
    const repository = fixture.repository();
    const subject = { mediaType: types.image, digest: sha512('a subject'), size: 9 };
    const all = await refer(repository, subject);
    expect((await list(repository, subject.digest)).answer.headers['oci-filters-applied']).toBeUndefined();
    for (const artifactType of [sbom, signature, types.config, 'application/vnd.example.none']) {
      const found = await list(repository, subject.digest, `?artifactType=${encodeURIComponent(artifactType)}`);
      expect(found.answer.headers['oci-filters-applied']).toBe('artifactType');
      expect([...found]).toEqual(all.filter((each) => each['artifactType'] === artifactType));
    }
  });

  test('returns an empty list without referrers, never 404', async () => {
    const repository = fixture.repository();
    expect(await list(repository, sha256('x'))).toHaveLength(0);
    await repository.put('v1', await repository.image());
    expect(await list(repository, sha256('x'))).toHaveLength(0);
    expect(await list(repository, sha512('x'), `?artifactType=${sbom}`)).toHaveLength(0);
  });

  test.each(['sha256:x', 'x', 'latest', `sha999:${'a'.repeat(64)}`])('%s is not a digest', async (digest) => {
    const answer = await fixture.repository().send(`referrers/${digest}`);
    expect([answer.status, answer.code]).toEqual([400, 'DIGEST_INVALID']);
  });

  test('does not list deleted referrers or referrers of another repository', async () => {
    const [repository, other] = [fixture.repository(), fixture.repository()];
    const subject = { mediaType: types.image, digest: sha256('shared subject'), size: 14 };
    const mine = await repository.manifest(await repository.image({ subject }));
    await other.manifest(await other.image({ subject, artifactType: sbom }));
    expect(digests(await list(repository, subject.digest))).toEqual([mine.digest]);
    await repository.send(`manifests/${mine.digest}`, { method: 'DELETE' });
    expect(await list(repository, subject.digest)).toHaveLength(0);
    expect(await list(other, subject.digest)).toHaveLength(1);
  });

  // "Enabling the Referrers API": the API also finds referrers that a client without the API listed under the fallback tag.
  test('lists the content of a fallback tag once, and leaves the tag unchanged', async () => {
    const repository = fixture.repository();
    const subject = { mediaType: types.image, digest: sha256('an old subject'), size: 14 };
    const kept = [
      await repository.manifest(await repository.image({ subject, artifactType: sbom })),
      await repository.manifest(await repository.image({ subject, artifactType: signature })),
    ];
    // Listed under the tag by mistake: it has no subject.
    const stray = await repository.manifest(await repository.image());
    const fallback = { schemaVersion: 2, mediaType: types.index, manifests: [...kept, stray] };
    const tag = subject.digest.replace(':', '-');
    await repository.put(tag, fallback);
    expect(digests(await list(repository, subject.digest))).toEqual(digests(kept));
    const pulled = await repository.send(`manifests/${tag}`);
    expect(json(pulled)).toEqual(fallback);
  });

  test('splits long lists into pages, each a manifest that clients can read', async () => {
    const repository = fixture.repository();
    const subject = { mediaType: types.image, digest: sha256('a popular subject'), size: 17 };
    const image = await repository.image({ subject });
    const pushed = new Map<string, string>();
    const push = async (artifactType: string, annotations: Readonly<Record<string, string>>) =>
      pushed.set((await repository.manifest({ ...image, artifactType, annotations })).digest, artifactType);
    for (let at = 0; at < 5; at += 1) await push(sbom, { at: String(at), fill: 'x'.repeat(1_000_000) });
    for (let at = 0; at < 3; at += 1) await push(signature, { at: String(at) });
    for (const [artifactType, leastPages] of [
      [undefined, 2],
      [sbom, 2],
      [signature, 1],
    ] as const) {
      const seen: Descriptor[] = [];
      const query = artifactType ? `?artifactType=${encodeURIComponent(artifactType)}` : '';
      let path: string | undefined = `referrers/${subject.digest}${query}`;
      let pages = 0;
      for (; path !== undefined; pages += 1) {
        const answer = await repository.send(path);
        expect(answer.body.length).toBeLessThanOrEqual(4 * 1024 * 1024);
        expect(answer.headers['oci-filters-applied']).toBe(artifactType && 'artifactType');
        seen.push(...indexOf(answer).manifests);
        path = nextOf(answer);
      }
      const wanted = [...pushed].filter(([, type]) => artifactType === undefined || type === artifactType);
      expect(digests(seen)).toEqual(wanted.map(([digest]) => digest).toSorted());
      expect(pages).toBeGreaterThanOrEqual(leastPages);
    }
  });

  test('reads a limited number of bytes of large referrers for each answer', async () => {
    const repository = fixture.repository();
    const subject = { mediaType: types.image, digest: sha256('a subject of giants'), size: 19 };
    const image = await repository.image({ subject, fill: 'x'.repeat(3_900_000) });
    const pushed: string[] = [];
    for (let at = 0; at < 10; at += 1) {
      const artifactType = at === 9 ? signature : sbom;
      pushed.push((await repository.manifest({ ...image, artifactType, at })).digest);
    }
    for (const [query, expected] of [
      ['', pushed],
      [`?artifactType=${encodeURIComponent(signature)}`, pushed.slice(9)],
    ] as const) {
      const seen: Descriptor[] = [];
      let path: string | undefined = `referrers/${subject.digest}${query}`;
      let pages = 0;
      for (; path !== undefined; pages += 1) {
        const answer = await repository.send(path);
        expect(answer.status).toBe(200);
        seen.push(...indexOf(answer).manifests);
        path = nextOf(answer);
      }
      expect(digests(seen)).toEqual(expected.toSorted());
      // Their descriptors fit into one answer, but their 37 MiB are not read at once.
      expect(pages).toBeGreaterThanOrEqual(2);
    }
  });
});
