import { describe, expect, it } from 'vitest';
import { proxySilentAfterMs } from '../../contract/messages.ts';
import { Connections } from './connections.ts';

const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms);
const ours = (backend: string) => backend.startsWith('our');

describe('Connections', () => {
  it('counts a backend as connected while any proxy says so', () => {
    const connections = new Connections(ours);
    connections.hear('a', { 'our-1': 2 }, at(0));
    connections.hear('b', { 'our-1': 1 }, at(0));
    connections.hear('a', {}, at(100));
    expect(connections.isOpen('our-1')).toBe(true);
    connections.hear('b', {}, at(200));
    expect(connections.isOpen('our-1')).toBe(false);
    expect(connections.closedAt('our-1')).toEqual(at(200));
  });

  it('forgets a proxy that is silent, and what it told; its connections count as closed then', () => {
    const connections = new Connections(ours);
    connections.hear('dead', { 'our-1': 1 }, at(0));
    connections.hear('alive', {}, at(proxySilentAfterMs - 1));
    connections.forgetSilent(at(proxySilentAfterMs - 1));
    expect(connections.isOpen('our-1')).toBe(true);
    connections.forgetSilent(at(proxySilentAfterMs));
    expect(connections.isOpen('our-1')).toBe(false);
    expect(connections.closedAt('our-1')).toEqual(at(proxySilentAfterMs));
    expect(connections.hearingSince).toEqual(at(0));
  });

  it('knows until when all proxies have told, which is as far as anybody can be swept', () => {
    const connections = new Connections(ours);
    expect(connections.heardUntil).toBeUndefined();
    connections.hear('a', {}, at(1_000));
    connections.hear('b', {}, at(2_000));
    connections.hear('b', {}, at(3_000));
    expect(connections.heardUntil).toEqual(at(1_000));
    connections.forgetSilent(at(1_000 + proxySilentAfterMs));
    expect(connections.heardUntil).toEqual(at(3_000));
  });

  it('knows since when it hears anybody, and that it hears nobody', () => {
    const connections = new Connections(ours);
    expect(connections.hearingSince).toBeUndefined();
    connections.hear('a', {}, at(0));
    connections.hear('a', {}, at(4_000));
    expect(connections.hearingSince).toEqual(at(0));
    connections.forgetSilent(at(60_000));
    expect(connections.hearingSince).toBeUndefined();
    connections.hear('a', {}, at(61_000));
    expect(connections.hearingSince).toEqual(at(61_000));
  });

  it('starts anew after a gap even if nobody has looked in between', () => {
    const connections = new Connections(ours);
    connections.hear('a', {}, at(0));
    connections.hear('a', {}, at(60_000));
    expect(connections.hearingSince).toEqual(at(60_000));
  });

  it('keeps nothing of a backend that has ended while somebody was connected', () => {
    const running = new Set(['one', 'other']);
    const connections = new Connections((backend) => running.has(backend));
    connections.hear('a', { one: 1, other: 1 }, at(0));
    connections.hear('silent', { one: 1 }, at(0));
    running.delete('one');
    connections.forget('one');
    connections.hear('a', {}, at(1_000));
    connections.forgetSilent(at(proxySilentAfterMs));
    expect(connections.closedAt('one')).toBeUndefined();
    expect(connections.closedAt('other')).toEqual(at(1_000));
  });

  it('keeps nothing of backends that run elsewhere', () => {
    const connections = new Connections(ours);
    connections.hear('a', { theirs: 1 }, at(0));
    connections.hear('a', {}, at(1));
    expect(connections.closedAt('theirs')).toBeUndefined();
  });
});
