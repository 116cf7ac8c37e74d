/** What the container of a backend may do. */
import { z } from 'zod';

/**
 * `default`: the capabilities of images that start as root, change owners and then run as another user. `none`: no
 * capabilities. `root-less`: no capabilities, a user other than root, and a root file system that cannot be written.
 */
export const securityProfiles = ['default', 'none', 'root-less'] as const;

export const securityProfile = z.enum(securityProfiles).meta({
  id: 'SecurityProfile',
  description:
    '`default`: root keeps what most images need to start; `none`: no Linux capabilities; `root-less`: no capabilities, never root, and a read-only root file system',
});

export type SecurityProfile = z.infer<typeof securityProfile>;
