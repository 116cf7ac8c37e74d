import { describe, expect, it } from 'vitest';
import { proxySilentAfterMs } from '../../contract/messages.ts';
import { Connections } from './connections.ts';

const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms);
const ours = (backend: string) => backend.startsWith('our');

describe('Connections', () => {
  it('counts a backend as connected while any proxy reports it', () => {
    const connections = new Connections(ours);
    connections.report('a', { 'our-1': 2 }, at(0));
    connections.report('b', { 'our-1': 1 }, at(0));
    connections.report('a', {}, at(100));
    expect(connections.isOpen('our-1')).toBe(true);
    connections.report('b', {}, at(200));
    expect(connections.isOpen('our-1')).toBe(false);
    expect(connections.closedAt('our-1')).toEqual(at(200));
  });

  it('removes a silent proxy with its reports; its connections then count as closed', () => {
    const connections = new Connections(ours);
    connections.report('dead', { 'our-1': 1 }, at(0));
    connections.report('alive', {}, at(proxySilentAfterMs - 1));
    connections.expireSilent(at(proxySilentAfterMs - 1));
    expect(connections.isOpen('our-1')).toBe(true);
    connections.expireSilent(at(proxySilentAfterMs));
    expect(connections.isOpen('our-1')).toBe(false);
    expect(connections.closedAt('our-1')).toEqual(at(proxySilentAfterMs));
    expect(connections.reportedSince).toEqual(at(0));
  });

  it('returns the time until which all proxies have reported, up to which the sweep may judge', () => {
    const connections = new Connections(ours);
    expect(connections.reportedUntil).toBeUndefined();
    connections.report('a', {}, at(1_000));
    connections.report('b', {}, at(2_000));
    connections.report('b', {}, at(3_000));
    expect(connections.reportedUntil).toEqual(at(1_000));
    connections.expireSilent(at(1_000 + proxySilentAfterMs));
    expect(connections.reportedUntil).toEqual(at(3_000));
  });

  it('returns since when a proxy reports, and nothing while none does', () => {
    const connections = new Connections(ours);
    expect(connections.reportedSince).toBeUndefined();
    connections.report('a', {}, at(0));
    connections.report('a', {}, at(4_000));
    expect(connections.reportedSince).toEqual(at(0));
    connections.expireSilent(at(60_000));
    expect(connections.reportedSince).toBeUndefined();
    connections.report('a', {}, at(61_000));
    expect(connections.reportedSince).toEqual(at(61_000));
  });

  it('begins again after a gap, even if no sweep ran in between', () => {
    const connections = new Connections(ours);
    connections.report('a', {}, at(0));
    connections.report('a', {}, at(60_000));
    expect(connections.reportedSince).toEqual(at(60_000));
  });

  it('keeps nothing of a backend that ended while a client was connected', () => {
    const running = new Set(['one', 'other']);
    const connections = new Connections((backend) => running.has(backend));
    connections.report('a', { one: 1, other: 1 }, at(0));
    connections.report('silent', { one: 1 }, at(0));
    running.delete('one');
    connections.delete('one');
    connections.report('a', {}, at(1_000));
    connections.expireSilent(at(proxySilentAfterMs));
    expect(connections.closedAt('one')).toBeUndefined();
    expect(connections.closedAt('other')).toEqual(at(1_000));
  });

  it('records changes at once, but only a report of all connections changes the time until which all have reported', () => {
    const connections = new Connections(ours);
    connections.report('a', { 'our-1': 1 }, at(0));
    connections.change('a', { 'our-2': 1, theirs: 1 }, at(100));
    expect(connections.isOpen('our-2')).toBe(true);
    expect(connections.isOpen('theirs')).toBe(false);
    connections.change('a', { 'our-1': 0, 'our-3': 0 }, at(200));
    expect([connections.isOpen('our-1'), connections.closedAt('our-1')]).toEqual([false, at(200)]);
    expect(connections.closedAt('our-3')).toBeUndefined();
    expect(connections.reportedUntil).toEqual(at(0));
    connections.report('a', { 'our-2': 1 }, at(1_000));
    expect(connections.reportedUntil).toEqual(at(1_000));
    // The closing of our-1 does not count again.
    expect(connections.closedAt('our-1')).toEqual(at(200));
  });

  it('has no such time while a proxy has reported only changes', () => {
    const connections = new Connections(ours);
    connections.report('a', {}, at(0));
    connections.change('new', { 'our-1': 1 }, at(500));
    expect(connections.reportedUntil).toBeUndefined();
    expect(connections.isOpen('our-1')).toBe(true);
    connections.report('new', { 'our-1': 1 }, at(900));
    expect(connections.reportedUntil).toEqual(at(0));
    connections.change('silent', {}, at(1_000));
    connections.report('a', {}, at(5_999));
    expect(connections.reportedUntil).toBeUndefined();
    connections.expireSilent(at(1_000 + proxySilentAfterMs));
    expect(connections.reportedUntil).toEqual(at(5_999));
  });

  it('does not trust the changes of a proxy whose reports of all connections are lost', () => {
    const connections = new Connections(ours);
    connections.report('a', { 'our-1': 1 }, at(0));
    for (let ms = 1_000; ms <= proxySilentAfterMs; ms += 1_000) connections.change('a', { 'our-2': 1 }, at(ms));
    // It counts as a new proxy, about which only the last change is known.
    expect([connections.isOpen('our-1'), connections.isOpen('our-2')]).toEqual([false, true]);
    expect(connections.reportedUntil).toBeUndefined();
  });

  it('keeps nothing of backends that run on other nodes', () => {
    const connections = new Connections(ours);
    connections.report('a', { theirs: 1 }, at(0));
    connections.report('a', {}, at(1));
    expect(connections.closedAt('theirs')).toBeUndefined();
  });
});
