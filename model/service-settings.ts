/** Settings of a service: the defaults of its backends, which a connect request can override. */
import { maxVariables, maxVariablesBytes } from '../contract/connect.ts';
import type { UrlForm } from '../contract/connect.ts';
import type { Readiness } from '../contract/readiness.ts';
import type { Egress } from '../contract/egress.ts';
import type { SecurityProfile } from '../contract/security-profile.ts';
import type { PlatformSecret } from '../core/secret/platform-secret.ts';
import { SecretBox } from '../core/secret/secret-box.ts';
import { ApiError } from './api-error.ts';
import type { BackendLimits } from './backend.ts';
import type { Service } from './service.ts';

type Variables = Readonly<Record<string, string>>;

export interface ServiceSettings {
  readonly port?: number;
  readonly maxIdleSeconds?: number;
  readonly limits?: BackendLimits;
  readonly readiness?: Readiness;
  readonly securityProfile?: SecurityProfile;
  readonly egress?: Egress;
  /** The form of connection URLs. */
  readonly urlForm?: UrlForm;
  readonly env?: Variables;
  /** By name, each encrypted separately (`sealSecrets`). */
  readonly secrets?: Variables;
}

/** A change of settings: absent fields stay unchanged, `null` removes a setting. */
export interface SettingsChange {
  readonly port?: number | null | undefined;
  readonly maxIdleSeconds?: number | null | undefined;
  readonly limits?: BackendLimits | null | undefined;
  readonly readiness?: Readiness | null | undefined;
  readonly securityProfile?: SecurityProfile | null | undefined;
  readonly egress?: Egress | null | undefined;
  readonly urlForm?: UrlForm | null | undefined;
  readonly env?: Readonly<Record<string, string | null>> | undefined;
  readonly secrets?: Readonly<Record<string, string | null>> | undefined;
}

/** Changes the settings of a service. Throws `BadRequest` if the variables would be too many or too large. */
export function withSettings(service: Service, change: SettingsChange): Service {
  const { port, maxIdleSeconds, limits, readiness, securityProfile, egress, urlForm, env, secrets } =
    service.settings ?? {};
  const settings = {
    port: changed(port, change.port),
    maxIdleSeconds: changed(maxIdleSeconds, change.maxIdleSeconds),
    limits: changed(limits, change.limits),
    readiness: changed(readiness, change.readiness),
    securityProfile: changed(securityProfile, change.securityProfile),
    egress: changed(egress, change.egress),
    urlForm: changed(urlForm, change.urlForm),
    env: changedVariables('env', env, change.env),
    secrets: changedVariables('secrets', secrets, change.secrets),
  };
  return { ...service, settings: withoutUndefined(settings) };
}

/** Encrypts secrets of services for the store. */
export function serviceSecretsBox(secret: PlatformSecret): SecretBox {
  return new SecretBox(secret.keyFor('service secrets'));
}

/** Encrypts the values of secrets for a service. */
export function sealSecrets(
  box: SecretBox,
  service: string,
  secrets: Readonly<Record<string, string | null>>,
): Record<string, string | null> {
  return Object.fromEntries(
    Object.entries(secrets).map(([name, value]) => [
      name,
      value === null ? null : box.seal(value, `${service}:${name}`),
    ]),
  );
}

/** Decrypts the secrets of a service, apart from those with names in `overridden`. */
export function openSecrets(box: SecretBox, { id, settings }: Service, overridden: Variables = {}): Variables {
  const sealed = Object.entries(settings?.secrets ?? {}).filter(([name]) => !Object.hasOwn(overridden, name));
  return Object.fromEntries(sealed.map(([name, value]) => [name, box.open(value, `${id}:${name}`)]));
}

function changed<T>(current: T | undefined, change: T | null | undefined): T | undefined {
  return change === undefined ? current : (change ?? undefined);
}

function changedVariables(
  field: string,
  current: Variables = {},
  change: Readonly<Record<string, string | null>> = {},
): Variables | undefined {
  const entries = Object.entries({ ...current, ...change }).filter(
    (entry): entry is [string, string] => entry[1] !== null,
  );
  const bytes = entries.reduce((sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value), 0);
  if (entries.length > maxVariables)
    throw new ApiError('BadRequest', `${field}: At most ${maxVariables} for a service`);
  if (bytes > maxVariablesBytes) {
    throw new ApiError('BadRequest', `${field}: Too large, use at most ${maxVariablesBytes} bytes for a service`);
  }
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** Absent fields have the platform's default, so none is written as `undefined`. */
function withoutUndefined(settings: { [K in keyof ServiceSettings]: ServiceSettings[K] | undefined }): ServiceSettings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as ServiceSettings;
}
