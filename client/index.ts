/** A client of Berth's service API for browsers and Node, without dependencies. */
export type { ArchiveUpload } from './archives.ts';
export { BerthClient } from './client.ts';
export type { AccessTokens, Accounts, TrustRules } from './accounts.ts';
export type { Nodes } from './nodes.ts';
export type { CallOptions } from './changes.ts';
export type { LogLine, LogOptions, WaitOptions } from './backend-streams.ts';
export type { EnvironmentOptions } from './client.ts';
export type * from './contract.ts';
export type { LogIns, Users } from './people.ts';
export type { Environments, Settings, SpawnTokens } from './services.ts';
export { BerthError } from './errors.ts';
export type { BerthErrorDetails, ClientErrorCode } from './errors.ts';
export type { StreamOptions } from './streams.ts';
export type {
  CallInput,
  EndpointName,
  ListOptions,
  SendOptions,
  TransportOptions as ClientOptions,
} from './transport.ts';
