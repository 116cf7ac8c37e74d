import { expect, test } from 'vitest';
import { PullProgressSum } from './pull-progress.ts';

test('adds up the layers that the engine reports, and ignores lines about the image', () => {
  const sum = new PullProgressSum();
  expect(sum.add({ status: 'Pulling from acme/pad', id: 'sha256:0123' })).toBeUndefined();
  sum.add({ status: 'Pulling fs layer', id: 'a' });
  sum.add({ status: 'Already exists', id: 'b' });
  expect(sum.add({ status: 'Pulling fs layer', id: 'c' })).toEqual({
    layers: 3,
    layersDone: 1,
    downloadedBytes: 0,
    totalBytes: 0,
  });
  sum.add({ status: 'Downloading', id: 'a', progressDetail: { current: 10, total: 100 } });
  expect(sum.add({ status: 'Downloading', id: 'c', progressDetail: { current: 50, total: 50 } })).toEqual({
    layers: 3,
    layersDone: 1,
    downloadedBytes: 60,
    totalBytes: 150,
  });
  sum.add({ status: 'Download complete', id: 'c', progressDetail: {} });
  sum.add({ status: 'Extracting', id: 'a', progressDetail: { current: 1, total: 999 } });
  expect(sum.add({ status: 'Pull complete', id: 'a', progressDetail: {} })).toEqual({
    layers: 3,
    layersDone: 2,
    downloadedBytes: 150,
    totalBytes: 150,
  });
  expect(sum.add({ status: 'Digest: sha256:0123' })).toBeUndefined();
});

test('counts the bytes of a layer without a known size as they arrive', () => {
  const sum = new PullProgressSum();
  expect(sum.add({ status: 'Downloading', id: 'a', progressDetail: { current: 7, total: -1 } })).toMatchObject({
    downloadedBytes: 7,
    totalBytes: 7,
  });
});

test('a status that is named like a method of objects is not about a layer', () => {
  expect(new PullProgressSum().add({ status: 'constructor', id: 'a' })).toBeUndefined();
});
