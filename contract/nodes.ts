/** Nodes in the service API. */
import { z } from 'zod';
import { get, post } from './endpoint.ts';
import { timestamp } from './timestamp.ts';

export const nodeObject = z
  .strictObject({
    name: z.string(),
    cluster: z.string(),
    alive: z.boolean().meta({ description: 'Whether its heartbeats arrive' }),
    drained_at: timestamp
      .nullable()
      .meta({ description: 'Since when it accepts no new backends; null: it accepts them' }),
    running_backends: z.int(),
    started_at: timestamp,
    engine_version: z.string().meta({ description: 'The release of its Docker Engine' }),
  })
  .meta({ id: 'Node' });

export const nodeEndpoints = {
  listNodes: get('/v2/nodes', {
    summary: 'The nodes of the platform, by name',
    access: 'admin',
    answer: z.strictObject({ nodes: z.array(nodeObject) }),
  }),
  drainNode: post('/v2/node/{node}/drain', {
    summary: 'Stop a node from accepting new backends; its running backends continue until they end',
    access: 'admin',
    errors: ['NodeNotFound'],
  }),
  undrainNode: post('/v2/node/{node}/undrain', {
    summary: 'Let a node accept new backends again',
    access: 'admin',
    errors: ['NodeNotFound'],
  }),
};

export type NodeObject = z.infer<typeof nodeObject>;
