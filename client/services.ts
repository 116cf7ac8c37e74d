/** Environments, settings and spawn tokens of services. */
import { sendChange, sendIdempotent } from './changes.ts';
import type { CallOptions } from './changes.ts';
import type {
  CreateEnvironmentRequest,
  Endpoints,
  Environment,
  ServiceSettings,
  ServiceSettingsChange,
} from './contract.ts';
import { servicePath } from './names.ts';
import { EndpointGroup } from './endpoint-group.ts';

/** Environments of services: named defaults of their backends. */
export class Environments extends EndpointGroup {
  /** The environments of a service, `default` among them. */
  async list(service: string, options?: CallOptions): Promise<Environment[]> {
    return (await this.transport.json('environments', { path: servicePath(service) }, options)).environments;
  }

  async create(service: string, environment: CreateEnvironmentRequest, options?: CallOptions): Promise<void> {
    const input = { path: servicePath(service), body: environment };
    await sendChange(this.transport, 'createEnvironment', input, { options, doneBefore: ['EnvironmentExists'] });
  }

  /** Deletes an environment. Its backends keep running. */
  async delete(service: string, environment: string, options?: CallOptions): Promise<void> {
    const input = { path: { ...servicePath(service), environment } };
    await sendChange(this.transport, 'deleteEnvironment', input, { options, doneBefore: ['EnvironmentNotFound'] });
  }
}

/** Settings of services: the defaults of their backends. */
export class Settings extends EndpointGroup {
  /** The settings of a service. Only the names of its secrets are readable. */
  async get(service: string, options?: CallOptions): Promise<ServiceSettings> {
    return await this.transport.json('serviceSettings', { path: servicePath(service) }, options);
  }

  /**
   * Changes settings of a service, including its environment variables and secrets, for backends that are spawned from now on. Omitted
   * fields stay unchanged; `null` restores the default, or deletes a variable.
   */
  async change(service: string, change: ServiceSettingsChange, options?: CallOptions): Promise<void> {
    const input = { path: servicePath(service), body: change };
    await sendIdempotent(this.transport, 'changeServiceSettings', input, options);
  }

  /** Whether the images of a service can be pulled without a token. */
  async isPublic(service: string, options?: CallOptions): Promise<boolean> {
    return (await this.transport.json('visibility', { path: servicePath(service) }, options)).public;
  }

  async setPublic(service: string, isPublic: boolean, options?: CallOptions): Promise<void> {
    const input = { path: servicePath(service), body: { public: isPublic } };
    await sendIdempotent(this.transport, 'setVisibility', input, options);
  }
}

type Spawned = Endpoints['earliestTokenSpawn']['answer'];

/** Spawn tokens, with which pages spawn backends without an access token. */
export class SpawnTokens extends EndpointGroup {
  /** Creates a spawn token of a service. All spawns with it have these options. */
  async create(
    service: string,
    spawn: Endpoints['earliestCreateSpawnToken']['body'] = {},
    options?: CallOptions,
  ): Promise<string> {
    const input = { path: servicePath(service), body: spawn };
    return (await this.transport.json('earliestCreateSpawnToken', input, options)).token;
  }

  /** Spawns a backend. Only environment variables that begin with `PLATFORM_` can be set. Needs no access token. */
  async spawn(
    token: string,
    request: Endpoints['earliestTokenSpawn']['body'] = {},
    options?: CallOptions,
  ): Promise<Spawned> {
    return await this.transport.json('earliestTokenSpawn', { path: { token }, body: request }, options);
  }

  async revoke(token: string, options?: CallOptions): Promise<void> {
    const input = { path: { token } };
    await sendChange(this.transport, 'earliestRevokeSpawnToken', input, {
      options,
      doneBefore: ['SpawnTokenNotFound'],
    });
  }
}
