import { endpoints } from '../../contract/endpoints.ts';
import type { PageQuery } from '../../contract/pages.ts';
import { StoreError } from '../../core/store/store.ts';
import { chooseImage, images } from '../../model/image.ts';
import { ApiError } from '../../model/api-error.ts';
import { environmentOf, newService, services, withImageTag, withVisibility } from '../../model/service.ts';
import { answer } from '../app.ts';
import { ownAccount, ownService, visibleService } from '../access.ts';
import type { Caller } from '../access.ts';
import { connect } from '../connect.ts';
import { findPage } from '../pages.ts';
import { presentConnection, presentImage, presentService } from '../present.ts';
import type { Api } from '../dependencies.ts';

export const serviceEndpoints = [
  answer(endpoints.connect, async (api, { parameters, body, caller, signal }) => {
    ownService(caller, parameters);
    return presentConnection(api, await connect(api, parameters, body, signal));
  }),
  answer(endpoints.connectEnvironment, async (api, { parameters, body, caller, signal }) => {
    ownService(caller, parameters);
    return presentConnection(api, await connect(api, parameters, body, signal));
  }),
  answer(endpoints.createService, async (api, { parameters, body, caller }) => {
    ownAccount(caller, parameters.account);
    await createService(api, parameters.account, body.name);
    return { status: 'ok' };
  }),
  answer(endpoints.listServices, async (api, { parameters, query, caller }) => {
    ownAccount(caller, parameters.account);
    return await listServices(api, parameters.account, query);
  }),
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
  answer(endpoints.update, async (api, { parameters, body, caller }) => {
    await update(api, caller, { ...parameters, imageTag: body.image_tag });
    return { status: 'ok' };
  }),
  answer(endpoints.updateEnvironment, async (api, { parameters, body, caller }) => {
    await update(api, caller, { ...parameters, imageTag: body.image_tag });
    return { status: 'ok' };
  }),
  answer(endpoints.visibility, async (api, { parameters, caller }) => {
    const service = await visibleService(api.store, caller, parameters);
    return { public: service.public ?? false };
  }),
  answer(endpoints.setVisibility, async (api, { parameters, body, caller }) => {
    const { id } = await visibleService(api.store, caller, parameters);
    await api.store.update(services, id, (current) => withVisibility(current, body.public));
    return { status: 'ok' };
  }),
];

/** Names of an account's services. */
export async function listServices({ store }: Api, account: string, page: PageQuery) {
  const ofAccount = { index: 'byAccount', equals: { account } } as const;
  const list = { collection: services, query: ofAccount, by: 'name', type: 'text' } as const;
  const { items, next } = await findPage(store, list, page);
  return { services: items.map(({ name }) => name), ...next };
}

/** Creates a service. Throws `ServiceExists`. */
export async function createService(api: Api, account: string, name: string): Promise<void> {
  const service = newService({ account, name, cluster: api.rules.defaultCluster }, api.clock.now());
  try {
    await api.store.insert(services, service);
  } catch (error) {
    if (!(error instanceof StoreError && error.code === 'duplicate')) throw error;
    throw new ApiError('ServiceExists', `Account "${account}" has a service "${name}" already`);
  }
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
  const lease = { now: await api.store.now(), leaseMs: api.rules.imageLeaseSeconds * 1000 };
  if (!(await chooseImage(api.store, { repository: service.id, reference: imageTag }, lease))) {
    throw new ApiError('ImageNotFound', `Service "${service.id}" has no image "${imageTag}"`);
  }
  await api.store.update(services, service.id, (current) => withImageTag(current, environment.name, imageTag));
  api.prefetch(service.id, ({ name }) => name === environment.name);
}
