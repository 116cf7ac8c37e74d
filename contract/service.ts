/** Services and images in the service API v2 (sections 2.9 and 2.10 of the API document). */
import { z } from 'zod';
import { clusterName, environmentName, imageReference, serviceName, tagPattern } from './names.ts';
import { timestamp } from './timestamp.ts';

export const environmentObject = z
  .strictObject({
    cluster: z.string(),
    created_at: timestamp,
    image_tag: z.string(),
    last_spawned_at: timestamp.nullable(),
    name: z.string(),
  })
  .meta({ id: 'Environment' });

export const serviceObject = z
  .strictObject({
    account_name: z.string(),
    created_at: timestamp,
    environments: z.array(environmentObject),
    image_name: z.string().meta({ description: 'The name with which to tag an image before `docker push`' }),
    last_image_digest: z.string().nullable(),
    last_image_upload_time: timestamp.nullable(),
    last_spawned_at: timestamp.nullable(),
    name: z.string(),
  })
  .meta({ id: 'Service' });

export const imageObject = z
  .strictObject({
    digest: z.string(),
    git_commit: z
      .strictObject({
        branch: z.string().optional(),
        hash: z.string().optional(),
        message: z.string().optional(),
        repository: z.string().optional(),
      })
      .optional(),
    repository: z.string(),
    tag: z.string(),
    upload_time: timestamp,
  })
  .meta({ id: 'Image' });

export const createServiceRequest = z.strictObject({ name: serviceName }).meta({ id: 'CreateServiceRequest' });

export const createEnvironmentRequest = z
  .strictObject({
    name: environmentName,
    image_tag: imageReference.meta({ description: 'What new backends run. Default: `latest`' }).optional(),
    cluster: clusterName.meta({ description: 'Where new backends run. Default: the default cluster' }).optional(),
  })
  .meta({ id: 'CreateEnvironmentRequest' });

export const updateRequest = z
  .strictObject({ image_tag: imageReference })
  .meta({ id: 'UpdateRequest', description: 'The default image of new backends' });

export const visibility = z
  .strictObject({ public: z.boolean().meta({ description: 'Whether the images can be pulled without a token' }) })
  .meta({ id: 'Visibility' });

/** The options of an archive upload, in the URL or as fields of the form. */
export const uploadQuery = z.strictObject({
  tag: z
    .string()
    .regex(tagPattern, 'Use up to 128 letters, digits, dots, hyphens and underscores')
    .optional()
    .meta({ description: 'The tag to set. Default: the tags in the archive, or `latest`' }),
  image: z
    .string()
    .max(512)
    .optional()
    .meta({ description: 'The name, tag or digest of the image, if the archive contains several' }),
});

export type UploadQuery = z.infer<typeof uploadQuery>;

export type EnvironmentObject = z.infer<typeof environmentObject>;
export type ServiceObject = z.infer<typeof serviceObject>;
export type ImageObject = z.infer<typeof imageObject>;
