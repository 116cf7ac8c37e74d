import { endpoints } from '../../contract/endpoints.ts';
import type { PageQuery } from '../../contract/pages.ts';
import { chooseImage, images } from '../../model/image.ts';
import { ApiError } from '../../model/api-error.ts';
import { covers } from '../../model/permissions.ts';
import {
  environmentOf,
  findService,
  insertService,
  newService,
  noService,
  services,
  withDeletion,
  withEnvironment,
  withImageTag,
  withoutEnvironment,
  withVisibility,
} from '../../model/service.ts';
import type { Service } from '../../model/service.ts';
import { answer } from '../app.ts';
import { ownAccount, ownService, partOfAccount, visibleService } from '../access.ts';
import type { Caller } from '../access.ts';
import { connect } from '../connect/connect.ts';
import { findPage } from '../pages.ts';
import { presentConnection, presentEnvironment, presentImage, presentService } from '../present.ts';
import type { Api } from '../dependencies.ts';

export const serviceEndpoints = [
  ...[endpoints.connect, endpoints.connectEnvironment].map((endpoint) =>
    answer(endpoint, async (api, call) => {
      ownService(call.caller, call.parameters);
      return presentConnection(api, await connect(api, call.parameters, call.body, call));
    }),
  ),
  answer(endpoints.createService, createService),
  answer(endpoints.listServices, listServices),
  answer(endpoints.service, async (api, { parameters, caller }) =>
    presentService(api.urls, await visibleService(api.store, caller, parameters)),
  ),
  answer(endpoints.serviceImages, async (api, { parameters, query, caller }) => {
    const { id: repository } = await visibleService(api.store, caller, parameters);
    const pushed = { index: 'byTime', equals: { repository }, order: 'descending' } as const;
    const list = { collection: images, query: pushed, by: 'uploadTime', type: 'time' } as const;
    const { items, next } = await findPage(api.store, list, query);
    return { images: items.map(presentImage), ...next };
  }),
  ...[endpoints.update, endpoints.updateEnvironment].map((endpoint) =>
    answer(endpoint, async (api, { parameters, body, caller }) => {
      await update(api, caller, { ...parameters, imageTag: body.image_tag });
    }),
  ),
  answer(endpoints.deleteService, async (api, { parameters, caller }) => {
    const { id } = await visibleService(api.store, caller, parameters);
    const now = await api.store.now();
    await api.store.update(services, id, (current) => withDeletion(current, now));
    api.clearServices();
  }),
  answer(endpoints.environments, async (api, { parameters, caller }) => {
    const { environments } = await visibleService(api.store, caller, parameters);
    return { environments: environments.map(presentEnvironment) };
  }),
  answer(endpoints.createEnvironment, async (api, { parameters, body, caller }) => {
    const service = await visibleService(api.store, caller, parameters);
    const { name, image_tag: imageTag, cluster = api.rules.defaultCluster } = body;
    if (imageTag !== undefined) await requireImage(api, service, imageTag);
    const now = await api.store.now();
    await changeService(api, service, (current) => withEnvironment(current, { name, imageTag, cluster }, now));
    if (imageTag !== undefined) api.prefetch(service.id, (environment) => environment.name === name);
  }),
  answer(endpoints.deleteEnvironment, async (api, { parameters, caller }) => {
    const service = await visibleService(api.store, caller, parameters);
    await changeService(api, service, (current) => withoutEnvironment(current, parameters.environment));
  }),
  answer(endpoints.visibility, async (api, { parameters, caller }) => {
    const service = await visibleService(api.store, caller, parameters);
    return { public: service.public ?? false };
  }),
  answer(endpoints.setVisibility, async (api, { parameters, body, caller }) => {
    const service = await visibleService(api.store, caller, parameters);
    await changeService(api, service, (current) => withVisibility(current, body.public));
  }),
];

/** A call that names an account, of any generation of the API. */
interface InAccount {
  readonly parameters: { readonly account: string };
  readonly caller: Caller;
}

/** Lists the names of an account's services that the caller may see. */
export async function listServices(
  { store }: Api,
  { parameters, caller, query }: InAccount & { readonly query: PageQuery },
) {
  const permission = partOfAccount(caller, parameters.account);
  const ofAccount = { index: 'byAccount', equals: { account: permission.account } } as const;
  const includes = ({ deletedAt, name }: Service) => !deletedAt && covers(permission, name);
  const list = { collection: services, query: ofAccount, by: 'name', type: 'text', includes } as const;
  const { items, next } = await findPage(store, list, query);
  return { services: items.map(({ name }) => name), ...next };
}

/** Creates a service. Throws `ServiceExists`. */
export async function createService(
  { store, rules, purgeRepository }: Api,
  { parameters: { account }, caller, body: { name } }: InAccount & { readonly body: { readonly name: string } },
): Promise<void> {
  ownAccount(caller, account);
  const begun = await store.now();
  const service = newService({ account, name, cluster: rules.defaultCluster }, begun);
  const isFree = (await findService(store, service.id)) === undefined;
  // Tags of a deleted service with this name must not reappear.
  if (isFree) await purgeRepository(service.id, begun);
  if (isFree && (await insertService(store, service))) return;
  throw new ApiError('ServiceExists', `Account "${account}" has a service "${name}" already`);
}

interface Update {
  readonly account: string;
  readonly service: string;
  readonly environment?: string;
  readonly imageTag: string;
}

async function update(api: Api, caller: Caller, { imageTag, ...path }: Update): Promise<void> {
  const service = await visibleService(api.store, caller, path);
  const environment = environmentOf(service, path.environment);
  await requireImage(api, service, imageTag);
  await changeService(api, service, (current) => withImageTag(current, environment.name, imageTag));
  api.prefetch(service.id, ({ name }) => name === environment.name);
}

/** Leases the image, until the service names it. Throws `ImageNotFound`. */
async function requireImage({ store, rules }: Api, { id }: Service, reference: string): Promise<void> {
  const lease = { now: await store.now(), leaseMs: rules.imageLeaseSeconds * 1000 };
  if (await chooseImage(store, { repository: id, reference }, lease)) return;
  throw new ApiError('ImageNotFound', `Service "${id}" has no image "${reference}"`);
}

/** Changes a service that was just read. Throws `ServiceNotFound` if it was deleted since. */
export async function changeService(api: Api, { id }: Service, change: (current: Service) => Service): Promise<void> {
  const changed = await api.store.update(services, id, (current) => (current.deletedAt ? current : change(current)));
  if (!changed || changed.deletedAt) throw noService(id);
}
