/** Scopes of access tokens. */
import { z } from 'zod';

/**
 * `read`: read services, backends, logs; pull images. `connect`: connect to backends and stop them. `push`: push and delete images.
 * `deploy`: set the image that new backends run. `manage`: everything else in an account.
 */
export const scopes = ['read', 'connect', 'push', 'deploy', 'manage'] as const;

export type Scope = (typeof scopes)[number];

export const scope = z.enum(scopes).meta({ id: 'Scope', description: 'What an access token allows' });
