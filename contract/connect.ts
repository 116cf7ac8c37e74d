/** The connect endpoint of the service API v2 (sections 2.1 to 2.5 of the API document). */
import { z } from 'zod';
import { generations } from './generations.ts';
import type { GenerationName } from './generations.ts';
import { clusterName, imageReference, key, plainText } from './names.ts';
import { backendStatus } from './statuses.ts';

/** Limits on the variables of a connect request, and of the settings of a service, which each connect reads. */
export const maxVariables = 256;
export const maxVariablesBytes = 64 * 1024;

const maxUserBytes = 1024;
const maxAuthBytes = 8 * 1024;

/** A year: longer than any session should run, and short enough for every timer. */
const maxSeconds = 365 * 24 * 60 * 60;

/** 6 MiB, the minimum of Docker. */
const minMemoryBytes = 6 * 1024 * 1024;

/** How long a backend may run, or be idle. */
export const seconds = z.int().min(1).max(maxSeconds);

/** Environment variables, by their names. */
export const variables = z.record(
  z
    .string()
    .regex(new RegExp(String.raw`^[^=\x00]+$`), 'The name of a variable must not be empty, nor contain "=" or NUL'),
  z.string().regex(new RegExp(String.raw`^[^\x00]*$`), 'The value of a variable must not contain NUL'),
);

/** Environment variables of a container, as a generation of the API accepts them. */
export function envOf({ onReservedVariable, reservedVariables }: (typeof generations)[GenerationName]) {
  const refused: readonly string[] = onReservedVariable === 'refuse' ? reservedVariables : [];
  return variables
    .superRefine((env, context) => {
      const names = Object.keys(env);
      for (const name of names.filter((each) => refused.includes(each))) {
        context.addIssue({ code: 'custom', message: 'This variable is set by the platform', path: [name] });
      }
      if (names.length > maxVariables) {
        context.addIssue({ code: 'custom', message: `Too many variables, use at most ${maxVariables}` });
      }
      const bytes = names.reduce((sum, name) => sum + utf8Bytes(name) + utf8Bytes(env[name] ?? ''), 0);
      if (bytes > maxVariablesBytes) {
        context.addIssue({ code: 'custom', message: `Too large, use at most ${maxVariablesBytes} bytes in total` });
      }
    })
    .meta({ description: 'Environment variables of the container' });
}

/** The forms of connection URLs. */
export const urlForms = ['host', 'path'] as const;

export type UrlForm = (typeof urlForms)[number];

/** The field `url_form` of requests. */
export const urlForm = z.enum(urlForms).meta({
  description:
    '`host`: each session has its own host, `<label>.<session domain>`. `path`: sessions share the host of the proxy, `<proxy>/<token>/`',
});

export const resourceLimits = z
  .strictObject({
    memory_limit_bytes: z
      .int()
      .min(minMemoryBytes)
      .meta({ description: 'When exceeded, the backend is terminated' })
      .optional(),
    cpu_period_percent: z
      .number()
      .min(0)
      .max(100)
      .meta({ description: 'Percentage of each window that the backend may use; 100 is one core' })
      .optional(),
    cpu_period: z.int().min(1_000).max(1_000_000).meta({ description: 'The window in microseconds' }).optional(),
    cpu_time_limit: z.int().min(1).max(maxSeconds).meta({ description: 'CPU seconds the backend may use' }).optional(),
  })
  .meta({ id: 'ResourceLimits' });

const mountPath = plainText.min(1).max(255);

export const executable = z
  .strictObject({
    mount: z.union([z.literal(true), mountPath]).optional(),
    env: envOf(generations.v2).optional(),
    resource_limits: resourceLimits.optional(),
  })
  .meta({ id: 'ExecutableConfig' });

export const spawnConfig = z
  .strictObject({
    tag: imageReference.optional(),
    cluster: clusterName.optional(),
    lifetime_limit_seconds: seconds.optional(),
    max_idle_seconds: seconds.optional(),
    executable: executable.optional(),
  })
  .meta({ id: 'SpawnConfig' });

export const connectRequest = z
  .strictObject({
    key: key.optional(),
    user: plainText
      .refine((user) => utf8Bytes(user) <= maxUserBytes, `Too long, use at most ${maxUserBytes} bytes`)
      .meta({ description: 'Sent to the backend as `x-verified-username`' })
      .optional(),
    auth: z
      .record(z.string(), z.json())
      .refine((auth) => asciiJson(auth).length <= maxAuthBytes, `Too large, use at most ${maxAuthBytes} bytes of JSON`)
      .meta({ description: 'Sent to the backend as JSON in `x-verified-user-data`' })
      .optional(),
    spawn: z.union([z.boolean(), spawnConfig]).optional(),
    url_form: urlForm.optional(),
  })
  .refine((request) => request.spawn !== false || request.key !== undefined, {
    path: ['spawn'],
    message: '`spawn: false` needs a `key` to look for',
  })
  .meta({
    id: 'ConnectRequest',
    if: { properties: { spawn: { const: false } }, required: ['spawn'] },
    // oxlint-disable-next-line unicorn/no-thenable -- a word of JSON Schema
    then: { required: ['key'] },
  });

/** In the answers of all generations, since a backend that was spawned through one of them can be reached through all. */
export const bearerToken = z.string().meta({
  description:
    'Only if the backend was spawned with `require_bearer_token`: each request to `url` needs it, as `Authorization: Bearer <token>`',
});

export const connectResponse = z
  .strictObject({
    backend_id: z.string(),
    url: z.string(),
    token: z.string(),
    secret_token: z.string(),
    ready_url: z.string(),
    status_url: z.string(),
    status: backendStatus,
    spawned: z.boolean(),
    bearer_token: bearerToken.optional(),
  })
  .meta({ id: 'ConnectResponse' });

export type ConnectRequest = z.infer<typeof connectRequest>;
export type ConnectResponse = z.infer<typeof connectResponse>;
export type SpawnConfig = z.infer<typeof spawnConfig>;
export type ResourceLimits = z.infer<typeof resourceLimits>;

/** JSON with only ASCII characters, so that an HTTP header can carry it. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function utf8Bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}
