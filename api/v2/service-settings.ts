/** Reads and changes the settings of services. */
import { endpoints } from '../../contract/endpoints.ts';
import type { ResourceLimits } from '../../contract/connect.ts';
import type { ServiceSettingsObject } from '../../contract/service-settings.ts';
import type { BackendLimits } from '../../model/backend.ts';
import { sealSecrets, withSettings } from '../../model/service-settings.ts';
import type { ServiceSettings } from '../../model/service-settings.ts';
import { visibleService } from '../access.ts';
import { answer } from '../app.ts';
import { checkLimit, checkMemory, planLimits } from '../connect/spawn.ts';
import { assertHostForm } from '../session-url.ts';
import { changeService } from './services.ts';

export const serviceSettingsEndpoints = [
  answer(endpoints.serviceSettings, async (api, { parameters, caller }) => {
    const { settings = {} } = await visibleService(api.store, caller, parameters);
    return presentSettings(settings);
  }),
  answer(endpoints.changeServiceSettings, async (api, { parameters, body, caller }) => {
    const service = await visibleService(api.store, caller, parameters);
    if (body.url_form === 'host') assertHostForm(api.urls);
    if (typeof body.max_idle_seconds === 'number')
      checkLimit('max_idle_seconds', body.max_idle_seconds, api.rules.maxIdleSecondsLimit);
    checkMemory(api.rules, 'resource_limits.memory_limit_bytes', body.resource_limits);
    const change = {
      port: body.port,
      maxIdleSeconds: body.max_idle_seconds,
      limits: body.resource_limits ? planLimits(body.resource_limits) : body.resource_limits,
      readiness: body.readiness,
      securityProfile: body.security_profile,
      egress: body.egress,
      urlForm: body.url_form,
      env: body.env,
      secrets: body.secrets && sealSecrets(api.serviceSecrets, service.id, body.secrets),
    };
    await changeService(api, service, (current) => withSettings(current, change));
  }),
];

function presentSettings(settings: ServiceSettings): ServiceSettingsObject {
  const { port, maxIdleSeconds, limits, readiness, securityProfile, egress, urlForm, env, secrets } = settings;
  return {
    port: port ?? null,
    max_idle_seconds: maxIdleSeconds ?? null,
    resource_limits: limits ? presentLimits(limits) : null,
    readiness: readiness ?? null,
    security_profile: securityProfile ?? null,
    egress: egress ?? null,
    url_form: urlForm ?? null,
    env: { ...env },
    secrets: Object.keys(secrets ?? {}).toSorted(),
  };
}

function presentLimits(limits: BackendLimits): ResourceLimits {
  const { memoryBytes, cpuPeriodPercent, cpuPeriodMicroseconds, cpuTimeSeconds } = limits;
  return {
    ...(memoryBytes !== undefined && { memory_limit_bytes: memoryBytes }),
    ...(cpuPeriodPercent !== undefined && { cpu_period_percent: cpuPeriodPercent }),
    ...(cpuPeriodMicroseconds !== undefined && { cpu_period: cpuPeriodMicroseconds }),
    ...(cpuTimeSeconds !== undefined && { cpu_time_limit: cpuTimeSeconds }),
  };
}
