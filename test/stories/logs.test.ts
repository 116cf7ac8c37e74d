/** What backends write: followed while they run, read after they have ended, and by nobody who may not. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { api, eventStream } from '../kit/client.ts';
import type { StreamEvent } from '../kit/client.ts';
import { inEverySetting, Stage } from './stage.ts';

inEverySetting((setting) => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await Stage.open(setting, { BERTH_STOP_GRACE_SECONDS: '3' });
    await stage.push('serve');
    await stage.push('failing');
  });
  afterAll(() => stage[Symbol.asyncDispose]());

  const pathOf = ({ backend_id: id }: { backend_id: string }) => `/v2/backend/${id}/logs/stream`;
  const log = (backend: { backend_id: string }, lastEventId?: string) =>
    eventStream(stage.platform, pathOf(backend), {
      signal: AbortSignal.timeout(30_000),
      ...(lastEventId !== undefined && { lastEventId }),
    });

  async function wholeLog(backend: { backend_id: string }, lastEventId?: string): Promise<StreamEvent[]> {
    return await rest(log(backend, lastEventId));
  }

  async function rest(events: AsyncGenerator<StreamEvent>): Promise<StreamEvent[]> {
    const all: StreamEvent[] = [];
    for await (const event of events) all.push(event);
    return all;
  }

  const wordsOf = (events: readonly StreamEvent[]) => events.map(({ data }) => data);

  async function next(events: AsyncGenerator<StreamEvent>): Promise<string | undefined> {
    const { value } = await events.next();
    return value === undefined ? undefined : value.data;
  }

  test('a log is followed from before the container is there, resumed, ends with its backend and outlives it', async () => {
    const connection = await stage.connect('serve');
    const follower = log(connection);
    expect(await next(follower)).toBe('serving');
    await fetch(`${connection.url}cgi-bin/say?one`);
    expect(await next(follower)).toBe('one');
    // Who comes later hears what was before.
    const second = log(connection);
    expect([await next(second), await next(second)]).toEqual(['serving', 'one']);
    await fetch(`${connection.url}cgi-bin/say?two`);
    expect([await next(follower), await next(second)]).toEqual(['two', 'two']);
    await stage.terminate(connection);
    const ends = [wordsOf(await rest(follower)), wordsOf(await rest(second))];
    expect(ends).toEqual([['bye'], ['bye']]);
    await stage.statusesUntil(connection, 'terminated');
    await expect
      .poll(() => stage.docker('ps', '--all', '--quiet', '--filter', `label=berth.backend=${connection.backend_id}`))
      .toBe('');
    const kept = await wholeLog(connection);
    expect(wordsOf(kept)).toEqual(['serving', 'one', 'two', 'bye']);
    expect(wordsOf(await wholeLog(connection, kept[1]?.id))).toEqual(['two', 'bye']);
    expect(await wholeLog(connection, kept[3]?.id)).toEqual([]);
  });

  test('what a backend said that did not start can be read', async () => {
    const connection = await stage.connect('failing');
    expect(wordsOf(await wholeLog(connection))).toEqual(['This backend cannot go on']);
    await stage.statusesUntil(connection, 'terminated');
    expect(wordsOf(await wholeLog(connection))).toEqual(['This backend cannot go on']);
  });

  test('nobody but its account sees a log', async () => {
    const connection = await stage.connectReady('serve');
    const absent = await api(stage.platform, pathOf({ backend_id: 'nosuchbackend' }));
    expect(absent.status).toBe(404);
    const stranger = await api(stage.platform, pathOf(connection), { headers: { authorization: 'Bearer guessed' } });
    expect(stranger.status).toBe(401);
    await Promise.all([absent.text(), stranger.text()]);
    await stage.terminate(connection, true);
  });
});
