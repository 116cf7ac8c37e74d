// Takes about 10 s
/** Hostile input, grouped by kind. The cases share one registry for each kind of drivers, which must stay unharmed. */
import { describe } from 'vitest';
import { againstAllRegistries } from './fixture.ts';
import { declareManifests } from './registry/manifests.ts';
import { declarePaths } from './registry/paths.ts';
import { declareQueries } from './registry/queries.ts';
import { declareRejectedBodies } from './registry/rejected-bodies.ts';
import { declareTransport } from './registry/transport.ts';
import { declareUploads } from './registry/uploads.ts';

againstAllRegistries((fixture) => {
  describe('manifests', () => {
    declareManifests(fixture);
  });
  describe('paths', () => {
    declarePaths(fixture);
  });
  describe('queries', () => {
    declareQueries(fixture);
  });
  describe('rejected bodies', () => {
    declareRejectedBodies(fixture);
  });
  describe('transport', () => {
    declareTransport(fixture);
  });
  describe('uploads', () => {
    declareUploads(fixture);
  });
});
