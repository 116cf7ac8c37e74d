/** Settings of a service: the defaults of its backends. A connect request overrides them. */
import { z } from 'zod';
import { egress } from './egress.ts';
import { securityProfile } from './security-profile.ts';
import { readiness } from './readiness.ts';
import { resourceLimits, seconds, urlForm, variables } from './connect.ts';
import { generations } from './generations.ts';

const port = z.int().min(1).max(65_535);

/** No generation may set these. */
const reserved: ReadonlySet<string> = new Set(
  Object.values(generations).flatMap(({ reservedVariables }): readonly string[] => reservedVariables),
);

const variableChanges = z
  .record(variables.keyType, variables.valueType.nullable())
  .superRefine((changes, context) => {
    for (const name of Object.keys(changes).filter((each) => reserved.has(each))) {
      context.addIssue({ code: 'custom', message: 'This variable is set by the platform', path: [name] });
    }
  })
  .meta({ description: 'Variables by name; null deletes a variable, and omitted variables stay unchanged' });

/** Omitted fields stay unchanged; null restores the platform's default. */
export const serviceSettingsChange = z
  .strictObject({
    port: port
      .nullable()
      .meta({
        description:
          'The port on which the application listens, and the value of `PORT`. Default: the only port that the image EXPOSEs, or else 8080',
      })
      .optional(),
    max_idle_seconds: seconds
      .nullable()
      .meta({ description: 'Seconds for which a backend keeps running after all its connections have closed' })
      .optional(),
    resource_limits: resourceLimits
      .nullable()
      .meta({ description: 'Limits of each backend. A connect request can override each limit separately' })
      .optional(),
    readiness: readiness.nullable().meta({ description: 'When a backend is ready. Default: `port`' }).optional(),
    security_profile: securityProfile
      .nullable()
      .meta({ description: 'What the containers may do. Default: `default`' })
      .optional(),
    egress: egress
      .nullable()
      .meta({ description: 'The networks that backends may open connections to. Default: `open`' })
      .optional(),
    url_form: urlForm.nullable().optional(),
    env: variableChanges
      .meta({ description: 'Environment variables of each backend, shown to each user that may read the service' })
      .optional(),
    secrets: variableChanges
      .meta({ description: 'Environment variables of each backend that are stored encrypted and never shown again' })
      .optional(),
  })
  .meta({ id: 'ServiceSettingsChange' });

export const serviceSettings = z
  .strictObject({
    port: port.nullable(),
    max_idle_seconds: z.int().nullable(),
    resource_limits: resourceLimits.nullable(),
    readiness: readiness.nullable(),
    security_profile: securityProfile.nullable(),
    egress: egress.nullable(),
    url_form: urlForm.nullable(),
    env: z.record(z.string(), z.string()),
    secrets: z
      .array(z.string())
      .meta({ description: 'The names of the secrets, in order. Their values are never shown' }),
  })
  .meta({ id: 'ServiceSettings', description: 'The defaults of backends; null: the default of the platform' });

export type ServiceSettingsObject = z.infer<typeof serviceSettings>;
