/** The grammar of names that users choose, and their limits in the service API. */
import { z } from 'zod';

/** `<account>/<service>` must be a valid OCI repository name, so both halves follow the grammar of its components. */
const componentPattern = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/;

/** With these account names, a repository would look like a path of the service API when both share a host. */
const reservedAccountNames = ['account', 'backend', 'service', 'token', 'user', 'auth', 'ready'];

const componentRule = 'use lower-case letters and digits, joined by single dots, hyphens or underscores';

const component = z
  .string()
  .min(1)
  .max(63, 'Too long, use at most 63 characters')
  .regex(componentPattern, `Not a valid name, ${componentRule}`);

/** An account's name: the first half of its images' repository names. */
export const accountName = component
  .refine((name) => !reservedAccountNames.includes(name), 'This name is reserved, choose another one')
  .meta({ id: 'AccountName', description: `Name of an account. Reserved: ${reservedAccountNames.join(', ')}` });

/** A service's name: the second half of its image repository's name. */
export const serviceName = component.meta({
  id: 'ServiceName',
  description: 'Name of a service, unique in its account',
});

/** An environment's name; `default` is created with the service. */
export const environmentName = component.meta({ id: 'EnvironmentName', description: 'Name of an environment' });

export const defaultEnvironmentName = 'default';

/** A cluster's name. */
export const clusterName = component.meta({ id: 'ClusterName', description: 'Name of a cluster of nodes' });

/** The grammar of an OCI tag (distribution-spec, "Pulling manifests"). */
export const tagPattern = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;

/** The digests that the registry accepts: sha256 and sha512 in lower-case hexadecimal. */
export const digestPattern = /^(?:sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128})$/;

/** A tag or an image digest. */
export const imageReference = z
  .string()
  .regex(new RegExp(`${tagPattern.source}|${digestPattern.source}`), 'Neither a tag nor an image digest')
  .meta({ id: 'ImageReference', description: 'A tag or an image digest (`sha256:<hex>`)' });

/**
 * Text without characters of Unicode's category Cc (C0 and C1 control characters). The pattern has ranges, because the OpenAPI document
 * contains it, and every language supports ranges.
 */
export const plainText = z
  .string()
  .regex(new RegExp(String.raw`^[^\x00-\x1f\x7f-\x9f]*$`), 'Control characters are not allowed');

/** The longest key, in Unicode code points, as JSON Schema counts, too. */
const maxKeyLength = 128;

/** A key: at most one running backend of a service holds it. */
export const key = plainText
  .refine((value) => value.length > 0, 'Empty, leave the key out to get a backend without a key')
  .refine((value) => Array.from(value).length <= maxKeyLength, `Too long, use at most ${maxKeyLength} characters`)
  .meta({
    id: 'Key',
    minLength: 1,
    maxLength: maxKeyLength,
    description: 'A key, unique among the running backends of a service (v1: lock)',
  });
