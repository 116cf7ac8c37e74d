/** The limits of the registry per account, per address and per archive. */
import { whole } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';

export const registrySettings = {
  registryAccountBytes: {
    variable: 'BERTH_REGISTRY_ACCOUNT_BYTES',
    schema: whole({ min: 0, max: Number.MAX_SAFE_INTEGER, or: 0 }),
    defaultText: '`0` (no limit)',
    help: 'How many bytes an account may store in the registry. Each blob counts once. 0: no limit.',
  },
  registryBlobBytes: {
    variable: 'BERTH_REGISTRY_BLOB_BYTES',
    schema: whole({ min: 0, max: Number.MAX_SAFE_INTEGER, or: 50 * 1024 * 1024 * 1024 }),
    help: 'The maximum size of a blob (a layer of an image). 0: no limit.',
  },
  registryOpenUploads: {
    variable: 'BERTH_REGISTRY_OPEN_UPLOADS',
    schema: whole({ min: 0, max: 1_000_000, or: 1000 }),
    help: 'How many uploads an account may have open in the registry. An upload that does not continue ends after a day. 0: no limit.',
  },
  registryRequestsPerSecond: {
    variable: 'BERTH_REGISTRY_REQUESTS_PER_SECOND',
    schema: whole({ min: 0, max: 1_000_000, or: 0 }),
    defaultText: '`0` (no limit)',
    help: 'How many requests per second the registry accepts from an account, or from an address if the request has no account. A burst may have ten times as many. 0: no limit.',
  },
  registryFailedLoginsPerMinute: {
    variable: 'BERTH_REGISTRY_FAILED_LOGINS_PER_MINUTE',
    schema: whole({ min: 0, max: 1_000_000, or: 30 }),
    help: 'How many logins of one user from one address may fail per minute, in all registry processes together. 0: no limit.',
  },
  maxArchiveBytes: {
    variable: 'BERTH_MAX_ARCHIVE_BYTES',
    schema: whole({ min: 1024 * 1024, max: Number.MAX_SAFE_INTEGER, or: 32 * 1024 * 1024 * 1024 }),
    help: 'The maximum size of an image archive that is uploaded to the API, both as sent and unpacked.',
  },
} satisfies Record<string, Setting<unknown>>;
