/** Roles of users in accounts. */
import { z } from 'zod';

/** `owner`: everything, people and audit included. `member`: works with services. `viewer`: reads. */
export const roles = ['owner', 'member', 'viewer'] as const;

export type Role = (typeof roles)[number];

export const role = z.enum(roles).meta({ id: 'Role', description: 'What a user may do in an account' });
