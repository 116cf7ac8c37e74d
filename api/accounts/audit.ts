/** The audit, for owners of accounts and for administrators. */
import { endpoints } from '../../contract/endpoints.ts';
import type { PageQuery } from '../../contract/pages.ts';
import type { AuditObject } from '../../contract/people.ts';
import { auditRecords } from '../../model/audit.ts';
import type { AuditRecord } from '../../model/audit.ts';
import { ownAccount } from '../access.ts';
import { answer } from '../app.ts';
import type { Api } from '../dependencies.ts';
import { findPage } from '../pages.ts';

/** Records of the platform belong to no account. */
const platform = '';

export const auditEndpoints = [
  answer(endpoints.accountAudit, async (api, { parameters, query, caller }) => {
    const { account } = ownAccount(caller, parameters.account);
    return await pageOf(api, account, query);
  }),
  answer(endpoints.platformAudit, async (api, { query }) => await pageOf(api, platform, query)),
];

async function pageOf(api: Api, account: string, query: PageQuery) {
  const newestFirst = { index: 'byAccount', equals: { account }, order: 'descending' } as const;
  const list = { collection: auditRecords, query: newestFirst, by: 'at', type: 'time' } as const;
  const { items, next } = await findPage(api.store, list, query);
  return { records: items.map(presentRecord), ...next };
}

function presentRecord(record: AuditRecord): AuditObject {
  return {
    time: record.at.toISOString(),
    action: record.action,
    details: { ...record.details },
    user_email: record.user ?? null,
    token_id: record.token ?? null,
    address: record.address,
    request_id: record.request,
    status: record.status ?? null,
  };
}
