/** Endpoints that the API document does not have, and that existing command lines call. */
import { z } from 'zod';
import { get, ok, post } from './endpoint.ts';
import { terminateBackendsRequest } from './backend.ts';

export const toolEndpoints = {
  imageName: get('/service/{account}/{service}/image-name', {
    summary: 'The name with which to tag an image of a service before `docker push`',
    access: 'any',
    answer: z.strictObject({ imageName: z.string() }),
    errors: ['ServiceNotFound'],
  }),
  terminateBackends: post('/service/{account}/{service}/terminate-backends', {
    summary: 'Stop all backends of a service that were spawned before a time',
    access: 'connect',
    body: terminateBackendsRequest,
    answer: ok.extend({
      backend_count: z.int().meta({ description: 'How many running backends were spawned before the time' }),
      terminated_count: z.int().meta({ description: 'How many of them this request has begun to stop' }),
      is_complete: z.boolean().meta({ description: 'Whether all of them are stopping' }),
    }),
    errors: ['ServiceNotFound'],
  }),
};
