import { expect, test } from 'vitest';
import { EventParser } from './events.ts';

function parsed(...pieces: string[]) {
  const parser = new EventParser(undefined);
  const events = pieces.flatMap((piece) => Array.from(parser.parse(piece)));
  return { events, parser };
}

const one = { id: '1', type: 'message', data: 'one' };

test.each([
  ['in one piece', ['id: 1\ndata: one\n\n']],
  ['character by character', Array.from('id: 1\ndata: one\n\n')],
  ['with CR and LF', ['id:1\r\ndata:one\r\n\r\n']],
  ['with CR and LF in different pieces', Array.from('id: 1\r\ndata: one\r\n\r\n')],
  ['with CR alone', ['id: 1\rdata: one\r\r']],
  ['with comments and unknown fields', [':\n\nid: 1\n: comment\nother: x\ndata: one\n\n']],
])('an event arrives %s', (_how, pieces) => {
  expect(parsed(...pieces).events).toEqual([one]);
});

test('several fields of data are lines of one event', () => {
  expect(parsed('data: one\ndata:\ndata:  two\n\n').events).toEqual([
    { id: undefined, type: 'message', data: 'one\n\n two' },
  ]);
});

test('an empty line of a log is an event', () => {
  expect(parsed('id: 1\ndata: \n\n').events).toEqual([{ ...one, data: '' }]);
});

test('an event without data is dropped, and its name does not apply to the next event', () => {
  expect(parsed('event: other\n\ndata: one\n\n').events).toEqual([{ id: undefined, type: 'message', data: 'one' }]);
});

test('the ID of an incomplete event is ignored, because the server must send the event again', () => {
  const { events, parser } = parsed('id: 1\ndata: one\n\nid: 2\ndata: tw');
  expect([events.length, parser.lastEventId]).toEqual([1, '1']);
  expect(parser.forNextStream().lastEventId).toBe('1');
});

test('the server sets the wait before a reconnect, also for later streams', () => {
  const { parser } = parsed('retry: 2000\n\nretry: soon\n\n');
  expect(parser.forNextStream().retryMs).toBe(2000);
});
