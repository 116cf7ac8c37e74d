/** Generated from `contract/` by `npm run generate`; do not edit. */

/** A stable code of an error that the API returns. */
export type ServiceErrorCode =
  | 'BadRequest'
  | 'Unauthorized'
  | 'Forbidden'
  | 'QuotaExceeded'
  | 'NotFound'
  | 'AccountNotFound'
  | 'UserNotFound'
  | 'CliLoginNotFound'
  | 'TrustRuleNotFound'
  | 'TokenNotFound'
  | 'NodeNotFound'
  | 'ServiceNotFound'
  | 'EnvironmentNotFound'
  | 'BackendNotFound'
  | 'SpawnTokenNotFound'
  | 'ImageNotFound'
  | 'KeyNotHeld'
  | 'MethodNotAllowed'
  | 'NotAcceptable'
  | 'RequestTimeout'
  | 'ServiceExists'
  | 'EnvironmentExists'
  | 'TooManyEnvironments'
  | 'AccountExists'
  | 'UserExists'
  | 'LastAdministrator'
  | 'LastOwner'
  | 'NoImage'
  | 'BackendNotRunning'
  | 'MountsDisabled'
  | 'PayloadTooLarge'
  | 'UnsupportedMediaType'
  | 'MisdirectedRequest'
  | 'HeadTooLarge'
  | 'TooManyBackends'
  | 'TooManyRequests'
  | 'InternalError'
  | 'ImagesElsewhere'
  | 'Unavailable'
  | 'InsufficientStorage';

export type CreateTokenRequest = {
  name: string;
  /** What the token allows */
  scopes: Scope[];
  /** The only services that the token is valid for. Default: all services of the account */
  services?: ServiceName[] | undefined;
  /** For how long the token is valid. Default: until it is revoked */
  expires_in_seconds?: number | undefined;
};

/** What an access token allows */
export type Scope = 'read' | 'connect' | 'push' | 'deploy' | 'manage';

/** Name of a service, unique in its account */
export type ServiceName = string;

export type SetUpRequest = {
  /** The set-up code, which the first start writes to the file `setup-code` of its data folder */
  code: string;
  user_email: UserEmail;
  password: Password;
};

/** The e-mail address of a user; capital and small letters count as the same */
export type UserEmail = string;

/** 12 to 256 characters of any kind */
export type Password = string;

export type InvitationRequest = {
  user_email: UserEmail;
  code: string;
  password: Password;
};

export type LogInRequest = {
  user_email: UserEmail;
  password: string;
};

export type ChangePasswordRequest = {
  current_password: string;
  new_password: Password;
};

export type CreateUserRequest = {
  user_email: UserEmail;
  is_admin?: boolean | undefined;
};

export type UpdateUserRequest = {
  is_admin?: boolean | undefined;
  /** Whether the user is locked out, with all tokens and log-ins */
  disabled?: boolean | undefined;
};

export type CreateAccountRequest = {
  name: AccountName;
  /** The user that becomes owner. Default: the caller */
  owner_email?: UserEmail | undefined;
};

/** Name of an account. Reserved: account, backend, service, token, user, auth, ready */
export type AccountName = string;

export type MemberRequest = {
  user_email: UserEmail;
  role: Role;
};

/** What a user may do in an account */
export type Role = 'owner' | 'member' | 'viewer';

export type CompleteCliLoginRequest = {
  /** The code that the page shows */
  code: string;
};

/** 0: no limit. null: the default limit. Omitted fields stay unchanged */
export type AccountLimitsRequest = {
  connects_per_second?: number | null | undefined;
  running_backends?: number | null | undefined;
};

export type TrustRuleRequest = {
  /** The issuer of ID tokens */
  issuer?: string | undefined;
  repository: string;
  /** The only branch. Default: every branch and tag */
  branch?: string | undefined;
  /** The only environment of the deployment. Default: any or none */
  environment?: string | undefined;
  scopes?: ('read' | 'connect' | 'push' | 'deploy')[] | undefined;
  /** The only services that the deploy token is valid for. Default: all */
  services?: ServiceName[] | undefined;
  lifetime_seconds?: number | undefined;
};

export type ExchangeRequest = {
  id_token: string;
};

export type ConnectRequest = {
  key?: Key | undefined;
  /** Sent to the backend as `x-verified-username` */
  user?: string | undefined;
  /** Sent to the backend as JSON in `x-verified-user-data` */
  auth?: {
    [name: string]: Json;
  } | undefined;
  spawn?: boolean | SpawnConfig | undefined;
  /** `host`: each session has its own host, `<label>.<session domain>`. `path`: sessions share the host of the proxy, `<proxy>/<token>/` */
  url_form?: 'host' | 'path' | undefined;
};

/** A key, unique among the running backends of a service (v1: lock) */
export type Key = string;

export type SpawnConfig = {
  tag?: ImageReference | undefined;
  cluster?: ClusterName | undefined;
  lifetime_limit_seconds?: number | undefined;
  max_idle_seconds?: number | undefined;
  executable?: ExecutableConfig | undefined;
};

/** A tag or an image digest (`sha256:<hex>`) */
export type ImageReference = string;

/** Name of a cluster of nodes */
export type ClusterName = string;

export type ExecutableConfig = {
  mount?: true | string | undefined;
  /** Environment variables of the container */
  env?: {
    [name: string]: string;
  } | undefined;
  resource_limits?: ResourceLimits | undefined;
};

export type ResourceLimits = {
  /** When exceeded, the backend is terminated */
  memory_limit_bytes?: number | undefined;
  /** Percentage of each window that the backend may use; 100 is one core */
  cpu_period_percent?: number | undefined;
  /** The window in microseconds */
  cpu_period?: number | undefined;
  /** CPU seconds the backend may use */
  cpu_time_limit?: number | undefined;
};

export type TerminateRequest = {
  /** Stop the container by force instead of sending SIGTERM */
  hard?: boolean | undefined;
};

export type CreateServiceRequest = {
  name: ServiceName;
};

/** The default image of new backends */
export type UpdateRequest = {
  image_tag: ImageReference;
};

export type CreateEnvironmentRequest = {
  name: EnvironmentName;
  /** What new backends run. Default: `latest` */
  image_tag?: ImageReference | undefined;
  /** Where new backends run. Default: the default cluster */
  cluster?: ClusterName | undefined;
};

/** Name of an environment */
export type EnvironmentName = string;

export type ServiceSettingsChange = {
  /** The port on which the application listens, and the value of `PORT`. Default: the only port that the image EXPOSEs, or else 8080 */
  port?: number | null | undefined;
  /** Seconds for which a backend keeps running after all its connections have closed */
  max_idle_seconds?: number | null | undefined;
  /** Limits of each backend. A connect request can override each limit separately */
  resource_limits?: ResourceLimits | null | undefined;
  /** When a backend is ready. Default: `port` */
  readiness?: Readiness | null | undefined;
  /** What the containers may do. Default: `default` */
  security_profile?: SecurityProfile | null | undefined;
  /** The networks that backends may open connections to. Default: `open` */
  egress?: Egress | null | undefined;
  url_form?: 'host' | 'path' | null | undefined;
  /** Environment variables of each backend, shown to each user that may read the service */
  env?: {
    [name: string]: string | null;
  } | undefined;
  /** Environment variables of each backend that are stored encrypted and never shown again */
  secrets?: {
    [name: string]: string | null;
  } | undefined;
};

/** When a backend is ready: `port`, when its port accepts connections; `http`, when a path answers, too; `healthcheck`, when the HEALTHCHECK of its image succeeds, too */
export type Readiness = {
  type: 'port';
} | {
  type: 'http';
  /** Requested with GET; ready when the answer is 200 to 399 */
  path: string;
} | {
  type: 'healthcheck';
};

/** `default`: root keeps what most images need to start; `none`: no Linux capabilities; `root-less`: no capabilities, never root, and a read-only root file system */
export type SecurityProfile = 'default' | 'none' | 'root-less';

/** The networks that backends may open connections to. `open`: all but the machine they run on, other backends and cloud metadata; `none`: none; a list: only these IPv4 networks. Without a DNS server in the list, names do not resolve */
export type Egress = 'open' | 'none' | string[];

export type Visibility = {
  /** Whether the images can be pulled without a token */
  public: boolean;
};

export type TerminateBackendsRequest = {
  /** Only backends that were spawned before this time are stopped. Default: now */
  before?: string | undefined;
  /** Stop the containers by force instead of sending SIGTERM */
  hard?: boolean | undefined;
  /** Only count the backends */
  dry_run?: boolean | undefined;
};

/** The options of all spawns that are made with the token */
export type SpawnTokenRequest = {
  tag?: ImageReference | undefined;
  /** Seconds for which the backend keeps running after all its connections have closed */
  grace_period_seconds?: number | undefined;
  lock?: Key | undefined;
  /** The environment whose defaults apply. Default: `default` */
  service_environment?: EnvironmentName | undefined;
  /** `host`: each session has its own host, `<label>.<session domain>`. `path`: sessions share the host of the proxy, `<proxy>/<token>/` */
  url_form?: 'host' | 'path' | undefined;
  /** Environment variables of the container */
  env?: {
    [name: string]: string;
  } | undefined;
  /** The port on which the backend listens */
  port?: number | undefined;
  /** Whether each request to the backend needs the `bearer_token` of the answer */
  require_bearer_token?: boolean | undefined;
};

export type TokenSpawnRequest = {
  /** Environment variables of the container */
  env?: {
    [name: string]: string;
  } | undefined;
  /** `host`: each session has its own host, `<label>.<session domain>`. `path`: sessions share the host of the proxy, `<proxy>/<token>/` */
  url_form?: 'host' | 'path' | undefined;
};

export type Json = string | number | boolean | null | Json[] | {
  [name: string]: Json;
};

export type CreatedAccessToken = {
  /** The token itself. It is shown only once */
  token: string;
  /** Names the token in other requests. It is no secret */
  id: string;
  name: string;
  /** The first characters of the secret */
  hint: string;
  kind: 'access' | 'deploy';
  scopes: Scope[];
  /** The only services that it is valid for; null: all */
  services: string[] | null;
  /** The user that it acts for; null: it belongs to the account */
  user_email: string | null;
  created_at: Timestamp;
  expires_at: Timestamp | null;
  revoked_at: Timestamp | null;
  /** The last use, exact to a minute */
  last_used_at: Timestamp | null;
};

/** ISO 8601 in UTC */
export type Timestamp = string;

/** The response to every failed request */
export type ErrorResponse = {
  error: {
    /** A stable code from the catalogue */
    code: string;
    /** One sentence that says what to do */
    message: string;
    /** The HTTP status */
    status: number;
    /** The request ID, which is in the log too */
    id: string;
  };
};

export type AccessToken = {
  /** Names the token in other requests. It is no secret */
  id: string;
  name: string;
  /** The first characters of the secret */
  hint: string;
  kind: 'access' | 'deploy';
  scopes: Scope[];
  /** The only services that it is valid for; null: all */
  services: string[] | null;
  /** The user that it acts for; null: it belongs to the account */
  user_email: string | null;
  created_at: Timestamp;
  expires_at: Timestamp | null;
  revoked_at: Timestamp | null;
  /** The last use, exact to a minute */
  last_used_at: Timestamp | null;
};

export type Ok = {
  status: 'ok';
};

export type Session = {
  /** Names the log-in in other requests. It is no secret */
  uuid: string;
  user_email: string;
  user_is_admin: boolean;
  accounts: string[];
  expires_at: Timestamp;
};

export type LogIn = {
  /** Names the log-in when it is ended. It is no secret */
  uuid: string;
  kind: 'browser' | 'command-line';
  /** What the program calls itself (`User-Agent`) */
  program: string;
  /** Whether it is the log-in that sends the request */
  is_current: boolean;
  created_at: Timestamp;
  /** Exact to a minute */
  last_used_at: Timestamp | null;
  expires_at: Timestamp | null;
};

export type Invitation = {
  user_email: string;
  /** Where the user sets a password, once. It is shown only once */
  url: string;
  expires_at: Timestamp;
};

export type User = {
  user_email: string;
  is_admin: boolean;
  disabled: boolean;
  has_password: boolean;
  created_at: Timestamp;
};

export type Account = {
  name: string;
  /** The role of the caller */
  role: Role;
};

export type Member = {
  user_email: string;
  role: Role;
  added_at: Timestamp;
};

export type CliLogin = {
  /** Names the log-in in other requests, and in the page `/cli-login/{token}` */
  token: string;
};

/** `ok`: a user has confirmed the log-in */
export type CliLoginStatus = {
  status: 'ok' | 'expired';
};

export type CliSession = {
  /** Names the log-in when it is ended */
  uuid: string;
  user_id: string;
  /** A token for all accounts of the user. It is shown only once */
  token: string;
  user_email: string;
  user_is_admin: boolean;
};

export type AccountLimits = {
  /** How many connects a second each API process accepts; 0: no limit */
  connects_per_second: number;
  /** How many backends may run at a time; 0: no limit */
  running_backends: number;
};

export type AuditRecord = {
  time: Timestamp;
  /** The operation, by its `operationId` in this document; on a page, also `confirmCliLogin`; at the registry: `pushManifest`, `deleteManifest`, `deleteTag`, `deleteBlob` */
  action: string;
  /** The target of the operation, and its settings */
  details: {
    [name: string]: unknown;
  };
  /** The user; null: a token of the account */
  user_email: string | null;
  /** The access token or log-in that the client used */
  token_id: string | null;
  /** The address of the client */
  address: string;
  /** The ID of the request, which is in the log */
  request_id: string;
  /** The HTTP status; null: the process stopped before it was known */
  status: number | null;
};

export type TrustRule = {
  id: string;
  issuer: string;
  repository: string;
  branch: string | null;
  environment: string | null;
  scopes: string[];
  services: string[] | null;
  lifetime_seconds: number;
  created_at: Timestamp;
};

export type DeployToken = {
  /** An access token for the API and the registry. It is shown only once */
  token: string;
  scopes: string[];
  services: string[] | null;
  expires_at: Timestamp;
};

export type Node = {
  name: string;
  cluster: string;
  /** Whether its heartbeats arrive */
  alive: boolean;
  /** Since when it accepts no new backends; null: it accepts them */
  drained_at: Timestamp | null;
  running_backends: number;
  started_at: Timestamp;
  /** The release of its Docker Engine */
  engine_version: string;
};

export type ConnectResponse = {
  backend_id: string;
  url: string;
  token: string;
  secret_token: string;
  ready_url: string;
  status_url: string;
  status: BackendStatusName;
  spawned: boolean;
  /** Only if the backend was spawned with `require_bearer_token`: each request to `url` needs it, as `Authorization: Bearer <token>` */
  bearer_token?: string | undefined;
};

/** Status of a backend */
export type BackendStatusName = 'scheduled' | 'loading' | 'starting' | 'waiting' | 'ready' | 'terminating' | 'hard-terminating' | 'terminated';

export type BackendStatus = {
  status: BackendStatusName;
  time: Timestamp;
  termination_kind?: TerminationKind | null | undefined;
  termination_reason?: TerminationReason | null | undefined;
  /** Whether the container exited with a non-zero code */
  exit_error?: boolean | undefined;
  /** What went wrong, as text for users: why the backend ended, or why its container does not answer yet */
  problem?: string | undefined;
};

/** How a backend was stopped */
export type TerminationKind = 'soft' | 'hard';

/** Why a backend was stopped */
export type TerminationReason = 'swept' | 'external' | 'startuptimeout' | 'keyexpired' | 'lost';

export type Backend = {
  account_name: string;
  cluster_name: string;
  created_at: Timestamp;
  environment_name: string;
  id: string;
  image_digest: string;
  key: string | null;
  service_name: string;
  /** The highest memory usage measured so far, 0 before the first measurement */
  max_mem_bytes: number;
  statuses: StatusEntry[];
};

export type StatusEntry = {
  status: BackendStatusName;
  time: Timestamp;
  last_status?: BackendStatusName | undefined;
  termination_kind?: TerminationKind | null | undefined;
  termination_reason?: TerminationReason | null | undefined;
  /** The same as `termination_reason`, spelled as in the API document */
  terminatation_reason?: TerminationReason | null | undefined;
  exit_code?: number | null | undefined;
  /** What went wrong, as text for users: why the backend ended, or why its container does not answer yet */
  problem?: string | undefined;
};

export type Metrics = {
  backend_id: string;
  /** CPU time of the container since the previous record, in nanoseconds */
  cpu_used: number;
  /** CPU time of the host since the previous record, in nanoseconds: the sum of all cores, busy or idle */
  sys_cpu: number;
  /** Memory in use, without reclaimable page cache, in bytes */
  mem_used: number;
  /** The memory limit in bytes, or the memory of the host if there is no limit */
  mem_limit: number;
  /** `mem_limit` minus `mem_used` */
  mem_available: number;
};

export type Traffic = {
  backend_id: string;
  /** Requests that have ended; an upgraded connection counts as one */
  requests: number;
  /** Bytes received from clients, including heads */
  bytes_in: number;
  /** Bytes sent to clients, including heads */
  bytes_out: number;
  /** Requests and upgraded connections that are open */
  open_connections: number;
  /** When a proxy last stored a part of these numbers, null before the first time */
  counted_at: Timestamp | null;
};

export type BackendListItem = {
  account_name: string;
  cluster_name: string;
  created_at: Timestamp;
  environment_name: string;
  id: string;
  image_digest: string;
  key: string | null;
  service_name: string;
  /** The highest memory usage measured so far, 0 before the first measurement */
  max_mem_bytes: number;
  ready_timestamp: Timestamp | null;
  status: BackendStatus;
};

export type RunningBackend = {
  account_name: string;
  cluster_name: string;
  created_at: Timestamp;
  environment_name: string;
  id: string;
  image_digest: string;
  key: string | null;
  service_name: string;
  status: BackendStatus;
};

export type Service = {
  account_name: string;
  created_at: Timestamp;
  environments: Environment[];
  /** The name with which to tag an image before `docker push` */
  image_name: string;
  last_image_digest: string | null;
  last_image_upload_time: Timestamp | null;
  last_spawned_at: Timestamp | null;
  name: string;
};

export type Environment = {
  cluster: string;
  created_at: Timestamp;
  image_tag: string;
  last_spawned_at: Timestamp | null;
  name: string;
};

export type Image = {
  digest: string;
  git_commit?: {
    branch?: string | undefined;
    hash?: string | undefined;
    message?: string | undefined;
    repository?: string | undefined;
  } | undefined;
  repository: string;
  tag: string;
  upload_time: Timestamp;
};

/** The defaults of backends; null: the default of the platform */
export type ServiceSettings = {
  port: number | null;
  max_idle_seconds: number | null;
  resource_limits: ResourceLimits | null;
  readiness: Readiness | null;
  security_profile: SecurityProfile | null;
  egress: Egress | null;
  url_form: 'host' | 'path' | null;
  env: {
    [name: string]: string;
  };
  /** The names of the secrets, in order. Their values are never shown */
  secrets: string[];
};

export type SpawnTokenResponse = {
  token: string;
};

export type V1SpawnResponse = {
  name: string;
  url: string;
  ready_url: string;
  status_url: string;
  status: V1State;
  spawned: boolean;
  /** Only if the backend was spawned with `require_bearer_token`: each request to `url` needs it, as `Authorization: Bearer <token>` */
  bearer_token?: string | undefined;
};

/** State of a backend in v1 and the earliest form */
export type V1State = 'Loading' | 'Starting' | 'Ready' | 'Swept' | 'Exited' | 'ErrorLoading' | 'ErrorStarting' | 'TimedOutBeforeReady' | 'Failed' | 'Terminated' | 'Lost';

/** The endpoints: parameters of the path, the query, the body of a request, and the body of a response. */
export interface Endpoints {
  /** Create an access token, which may allow no more than the caller may do */
  createToken: {
    path: {
      account: string;
    };
    query: undefined;
    body: CreateTokenRequest;
    answer: CreatedAccessToken;
  };
  /** Access tokens of an account, newest first: all tokens for an owner, otherwise the tokens that act for the caller */
  listTokens: {
    path: {
      account: string;
    };
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
    };
    body: undefined;
    answer: {
      tokens: AccessToken[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** Revoke an access token: within a second, no process accepts it, and its open streams end */
  revokeToken: {
    path: {
      account: string;
      token_id: string;
    };
    query: undefined;
    body: undefined;
    answer: Ok;
  };
  /** Create the first administrator with the set-up code, which the first start writes to its data folder */
  setUp: {
    path: undefined;
    query: undefined;
    body: SetUpRequest;
    answer: Ok;
  };
  /** Set the password of a user with the code of an invitation */
  acceptInvitation: {
    path: undefined;
    query: undefined;
    body: InvitationRequest;
    answer: Ok;
  };
  /** Log a browser in: the answer sets a cookie */
  logIn: {
    path: undefined;
    query: undefined;
    body: LogInRequest;
    answer: Session;
  };
  /** End a log-in of the caller, of a browser or a command line */
  logOut: {
    path: {
      uuid: string;
    };
    query: undefined;
    body: undefined;
    answer: Ok;
  };
  /** Log-ins of the caller with browsers and command lines that have not ended, newest first */
  listLogIns: {
    path: undefined;
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
    };
    body: undefined;
    answer: {
      log_ins: LogIn[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** End all log-ins of the caller except the one that sends the request */
  logOutOthers: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: Ok;
  };
  /** Change the password of the caller, which ends all log-ins */
  changePassword: {
    path: undefined;
    query: undefined;
    body: ChangePasswordRequest;
    answer: Ok;
  };
  /** Create a user, who sets a password with the invitation in the answer */
  createUser: {
    path: undefined;
    query: undefined;
    body: CreateUserRequest;
    answer: Invitation;
  };
  /** Users of the platform, oldest first */
  listUsers: {
    path: undefined;
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
    };
    body: undefined;
    answer: {
      users: User[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** Invite a user to set a new password, with the invitation in the answer; earlier invitations become invalid */
  inviteUser: {
    path: {
      user_email: string;
    };
    query: undefined;
    body: undefined;
    answer: Invitation;
  };
  /** Grant or revoke the rights of an administrator, disable or enable a user */
  updateUser: {
    path: {
      user_email: string;
    };
    query: undefined;
    body: UpdateUserRequest;
    answer: Ok;
  };
  /** Create an account */
  createAccount: {
    path: undefined;
    query: undefined;
    body: CreateAccountRequest;
    answer: Ok;
  };
  /** The accounts that the token is valid for; for the log-in of an administrator, all accounts */
  listAccounts: {
    path: undefined;
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
    };
    body: undefined;
    answer: {
      accounts: Account[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** Members of an account */
  listMembers: {
    path: {
      account: string;
    };
    query: undefined;
    body: undefined;
    answer: {
      members: Member[];
    };
  };
  /** Add a user to an account, or change the role */
  setMember: {
    path: {
      account: string;
    };
    query: undefined;
    body: MemberRequest;
    answer: Ok;
  };
  /** Remove a user from an account: tokens of the user stop working there within a second */
  removeMember: {
    path: {
      account: string;
      user_email: string;
    };
    query: undefined;
    body: undefined;
    answer: Ok;
  };
  /** Begin the log-in of a command line, which a user confirms in a browser at `/cli-login/{token}` */
  beginCliLogin: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: CliLogin;
  };
  /** One event when the log-in of a command line was confirmed or has expired */
  cliLoginStatus: {
    path: {
      token: string;
    };
    query: undefined;
    body: undefined;
    answer: CliLoginStatus;
  };
  /** Complete the log-in of a command line with the code that the page has shown */
  completeCliLogin: {
    path: {
      token: string;
    };
    query: undefined;
    body: CompleteCliLoginRequest;
    answer: CliSession;
  };
  /** How often an account may connect, and how many backends it may run */
  accountLimits: {
    path: {
      account: string;
    };
    query: undefined;
    body: undefined;
    answer: AccountLimits;
  };
  /** Limit how often an account may connect, and how many backends it may run */
  setAccountLimits: {
    path: {
      account: string;
    };
    query: undefined;
    body: AccountLimitsRequest;
    answer: Ok;
  };
  /** The changes in an account, with the user, token and address of each, newest first */
  accountAudit: {
    path: {
      account: string;
    };
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
    };
    body: undefined;
    answer: {
      records: AuditRecord[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** The changes outside of accounts (users, accounts, log-ins), newest first */
  platformAudit: {
    path: undefined;
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
    };
    body: undefined;
    answer: {
      records: AuditRecord[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** Allow deployments of a repository to exchange their ID token (OpenID Connect) for a short-lived deploy token */
  createTrustRule: {
    path: {
      account: string;
    };
    query: undefined;
    body: TrustRuleRequest;
    answer: TrustRule;
  };
  /** Trust rules of an account, newest first */
  listTrustRules: {
    path: {
      account: string;
    };
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
    };
    body: undefined;
    answer: {
      rules: TrustRule[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** Delete a trust rule; deploy tokens that it has issued expire by themselves */
  deleteTrustRule: {
    path: {
      account: string;
      rule_id: string;
    };
    query: undefined;
    body: undefined;
    answer: Ok;
  };
  /** Exchange the ID token of a deployment, with the URL of the API as its audience, for a deploy token */
  exchangeIdToken: {
    path: {
      account: string;
    };
    query: undefined;
    body: ExchangeRequest;
    answer: DeployToken;
  };
  /** The nodes of the platform, by name */
  listNodes: {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: {
      nodes: Node[];
    };
  };
  /** Stop a node from accepting new backends; its running backends continue until they end */
  drainNode: {
    path: {
      node: string;
    };
    query: undefined;
    body: undefined;
    answer: Ok;
  };
  /** Let a node accept new backends again */
  undrainNode: {
    path: {
      node: string;
    };
    query: undefined;
    body: undefined;
    answer: Ok;
  };
  /** Get a connection URL to the backend that holds a key, or to a new backend */
  connect: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: ConnectRequest;
    answer: ConnectResponse;
  };
  /** Connect with the defaults of an environment */
  connectEnvironment: {
    path: {
      account: string;
      service: string;
      environment: string;
    };
    query: undefined;
    body: ConnectRequest;
    answer: ConnectResponse;
  };
  /** The current status of a backend */
  backendStatus: {
    path: {
      backend_id: string;
    };
    query: undefined;
    body: undefined;
    answer: BackendStatus;
  };
  /** The past statuses of a backend, then each new status until the backend has ended */
  backendStatusStream: {
    path: {
      backend_id: string;
    };
    query: undefined;
    body: undefined;
    answer: BackendStatus;
  };
  /** A backend and its status history */
  backend: {
    path: {
      backend_id: string;
    };
    query: undefined;
    body: undefined;
    answer: Backend;
  };
  /** The log of a backend: the stored lines, then each new line until the backend has ended */
  backendLogs: {
    path: {
      backend_id: string;
    };
    query: {
      /** Whether new lines follow the stored ones. Default: true */
      follow?: 'true' | 'false' | undefined;
    };
    body: undefined;
    answer: string;
  };
  /** The resource usage of a backend, every second until the backend has ended */
  backendMetrics: {
    path: {
      backend_id: string;
    };
    query: undefined;
    body: undefined;
    answer: Metrics;
  };
  /** The traffic of a backend so far, as counted by the proxies; at most a few seconds old */
  backendTraffic: {
    path: {
      backend_id: string;
    };
    query: undefined;
    body: undefined;
    answer: Traffic;
  };
  /** Stop a backend */
  terminate: {
    path: {
      backend_id: string;
    };
    query: undefined;
    body: TerminateRequest;
    answer: Ok;
  };
  /** Backends of a service, newest first */
  serviceBackends: {
    path: {
      account: string;
      service: string;
    };
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
      start?: string | undefined;
      end?: string | undefined;
    };
    body: undefined;
    answer: {
      backends: BackendListItem[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** All running backends of an account, newest first */
  accountBackends: {
    path: {
      account: string;
    };
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
    };
    body: undefined;
    answer: {
      running_backends: RunningBackend[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** Create a service */
  createService: {
    path: {
      account: string;
    };
    query: undefined;
    body: CreateServiceRequest;
    answer: Ok;
  };
  /** Names of the services of an account */
  listServices: {
    path: {
      account: string;
    };
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
    };
    body: undefined;
    answer: {
      services: string[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** A service */
  service: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: undefined;
    answer: Service;
  };
  /** Images pushed for a service, newest first */
  serviceImages: {
    path: {
      account: string;
      service: string;
    };
    query: {
      /** The maximum number of items on the page */
      limit?: number | undefined;
      /** `next_cursor` of the previous page */
      cursor?: string | undefined;
    };
    body: undefined;
    answer: {
      images: Image[];
      /** The start of the next page; absent on the last page */
      next_cursor?: string | undefined;
    };
  };
  /** Upload an image without Docker, as an archive of `docker save` or an OCI layout */
  uploadImage: {
    path: {
      account: string;
      service: string;
    };
    query: {
      /** The tag to set. Default: the tags in the archive, or `latest` */
      tag?: string | undefined;
      /** The name, tag or digest of the image, if the archive contains several */
      image?: string | undefined;
    };
    body: undefined;
    answer: Image;
  };
  /** Download an image as an archive, for `docker load`, podman and skopeo */
  imageArchive: {
    path: {
      account: string;
      service: string;
      digest: string;
    };
    query: undefined;
    body: undefined;
    answer: undefined;
  };
  /** Set the image that new backends run by default */
  update: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: UpdateRequest;
    answer: Ok;
  };
  /** Set the image that new backends of an environment run by default */
  updateEnvironment: {
    path: {
      account: string;
      service: string;
      environment: string;
    };
    query: undefined;
    body: UpdateRequest;
    answer: Ok;
  };
  /** Delete a service: it accepts no connects from now on, its backends are stopped, and its images deleted */
  deleteService: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: undefined;
    answer: Ok;
  };
  /** The environments of a service */
  environments: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: undefined;
    answer: {
      environments: Environment[];
    };
  };
  /** Create an environment of a service */
  createEnvironment: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: CreateEnvironmentRequest;
    answer: Ok;
  };
  /** Delete an environment of a service; its backends keep running */
  deleteEnvironment: {
    path: {
      account: string;
      service: string;
      environment: string;
    };
    query: undefined;
    body: undefined;
    answer: Ok;
  };
  /** The settings of a service: the defaults of its backends, without the values of its secrets */
  serviceSettings: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: undefined;
    answer: ServiceSettings;
  };
  /** Change settings of a service, for backends that are spawned from now on */
  changeServiceSettings: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: ServiceSettingsChange;
    answer: Ok;
  };
  /** Whether the images of a service can be pulled without a login */
  visibility: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: undefined;
    answer: Visibility;
  };
  /** Allow or forbid pulling the images of a service without a login */
  setVisibility: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: Visibility;
    answer: Ok;
  };
  /** The name with which to tag an image of a service before `docker push` */
  imageName: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: undefined;
    answer: {
      imageName: string;
    };
  };
  /** Stop all backends of a service that were spawned before a time */
  terminateBackends: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: TerminateBackendsRequest;
    answer: {
      status: 'ok';
      /** How many running backends were spawned before the time */
      backend_count: number;
      /** How many of them this request has begun to stop */
      terminated_count: number;
      /** Whether all of them are stopping */
      is_complete: boolean;
    };
  };
  /** Create a spawn token, with which any client can spawn backends of the service */
  earliestCreateSpawnToken: {
    path: {
      account: string;
      service: string;
    };
    query: undefined;
    body: SpawnTokenRequest;
    answer: SpawnTokenResponse;
  };
  /** Get a connection URL to a new backend, with a spawn token */
  earliestTokenSpawn: {
    path: {
      token: string;
    };
    query: undefined;
    body: TokenSpawnRequest;
    answer: V1SpawnResponse;
  };
  /** Revoke a spawn token */
  earliestRevokeSpawnToken: {
    path: {
      token: string;
    };
    query: undefined;
    body: undefined;
    answer: Ok;
  };
}

/** How each endpoint is called. */
export const endpoints = {
  createToken: { method: 'POST', path: '/v2/account/{account}/token', needsToken: true },
  listTokens: { method: 'GET', path: '/v2/account/{account}/tokens', needsToken: true },
  revokeToken: { method: 'POST', path: '/v2/account/{account}/token/{token_id}/revoke', needsToken: true },
  setUp: { method: 'POST', path: '/v2/setup', needsToken: false },
  acceptInvitation: { method: 'POST', path: '/v2/invitation', needsToken: false },
  logIn: { method: 'POST', path: '/v2/session', needsToken: false },
  logOut: { method: 'POST', path: '/user-session/{uuid}/delete', needsToken: true },
  listLogIns: { method: 'GET', path: '/v2/user/logins', needsToken: true },
  logOutOthers: { method: 'POST', path: '/v2/user/logins/end-others', needsToken: true },
  changePassword: { method: 'POST', path: '/v2/user/password', needsToken: true },
  createUser: { method: 'POST', path: '/v2/user', needsToken: true },
  listUsers: { method: 'GET', path: '/v2/users', needsToken: true },
  inviteUser: { method: 'POST', path: '/v2/user/{user_email}/invite', needsToken: true },
  updateUser: { method: 'POST', path: '/v2/user/{user_email}/update', needsToken: true },
  createAccount: { method: 'POST', path: '/v2/account', needsToken: true },
  listAccounts: { method: 'GET', path: '/v2/accounts', needsToken: true },
  listMembers: { method: 'GET', path: '/v2/account/{account}/members', needsToken: true },
  setMember: { method: 'POST', path: '/v2/account/{account}/member', needsToken: true },
  removeMember: { method: 'POST', path: '/v2/account/{account}/member/{user_email}/remove', needsToken: true },
  beginCliLogin: { method: 'POST', path: '/cli-login', needsToken: false },
  cliLoginStatus: { method: 'GET', path: '/cli-login/{token}/status/stream', needsToken: false },
  completeCliLogin: { method: 'POST', path: '/cli-login/{token}/complete', needsToken: false },
  accountLimits: { method: 'GET', path: '/v2/account/{account}/limits', needsToken: true },
  setAccountLimits: { method: 'POST', path: '/v2/account/{account}/limits', needsToken: true },
  accountAudit: { method: 'GET', path: '/v2/account/{account}/audit', needsToken: true },
  platformAudit: { method: 'GET', path: '/v2/audit', needsToken: true },
  createTrustRule: { method: 'POST', path: '/v2/account/{account}/trust', needsToken: true },
  listTrustRules: { method: 'GET', path: '/v2/account/{account}/trusts', needsToken: true },
  deleteTrustRule: { method: 'POST', path: '/v2/account/{account}/trust/{rule_id}/delete', needsToken: true },
  exchangeIdToken: { method: 'POST', path: '/v2/account/{account}/oidc-token', needsToken: false },
  listNodes: { method: 'GET', path: '/v2/nodes', needsToken: true },
  drainNode: { method: 'POST', path: '/v2/node/{node}/drain', needsToken: true },
  undrainNode: { method: 'POST', path: '/v2/node/{node}/undrain', needsToken: true },
  connect: { method: 'POST', path: '/v2/service/{account}/{service}/connect', needsToken: true },
  connectEnvironment: { method: 'POST', path: '/v2/service/{account}/{service}/{environment}/connect', needsToken: true },
  backendStatus: { method: 'GET', path: '/v2/backend/{backend_id}/status', needsToken: false },
  backendStatusStream: { method: 'GET', path: '/v2/backend/{backend_id}/status/stream', needsToken: false },
  backend: { method: 'GET', path: '/v2/backend/{backend_id}', needsToken: true },
  backendLogs: { method: 'GET', path: '/v2/backend/{backend_id}/logs/stream', needsToken: true },
  backendMetrics: { method: 'GET', path: '/v2/backend/{backend_id}/metrics/stream', needsToken: true },
  backendTraffic: { method: 'GET', path: '/v2/backend/{backend_id}/traffic', needsToken: true },
  terminate: { method: 'POST', path: '/v2/backend/{backend_id}/terminate', needsToken: true },
  serviceBackends: { method: 'GET', path: '/v2/service/{account}/{service}/backends', needsToken: true },
  accountBackends: { method: 'GET', path: '/v2/account/{account}/backends', needsToken: true },
  createService: { method: 'POST', path: '/v2/account/{account}/service', needsToken: true },
  listServices: { method: 'GET', path: '/v2/account/{account}/services', needsToken: true },
  service: { method: 'GET', path: '/v2/service/{account}/{service}', needsToken: true },
  serviceImages: { method: 'GET', path: '/v2/service/{account}/{service}/images', needsToken: true },
  uploadImage: { method: 'POST', path: '/v2/service/{account}/{service}/images', needsToken: true },
  imageArchive: { method: 'GET', path: '/v2/service/{account}/{service}/images/{digest}/archive', needsToken: true },
  update: { method: 'POST', path: '/v2/service/{account}/{service}/update', needsToken: true },
  updateEnvironment: { method: 'POST', path: '/v2/service/{account}/{service}/{environment}/update', needsToken: true },
  deleteService: { method: 'POST', path: '/v2/service/{account}/{service}/delete', needsToken: true },
  environments: { method: 'GET', path: '/v2/service/{account}/{service}/environments', needsToken: true },
  createEnvironment: { method: 'POST', path: '/v2/service/{account}/{service}/environments', needsToken: true },
  deleteEnvironment: { method: 'POST', path: '/v2/service/{account}/{service}/{environment}/delete', needsToken: true },
  serviceSettings: { method: 'GET', path: '/v2/service/{account}/{service}/settings', needsToken: true },
  changeServiceSettings: { method: 'POST', path: '/v2/service/{account}/{service}/settings', needsToken: true },
  visibility: { method: 'GET', path: '/v2/service/{account}/{service}/visibility', needsToken: true },
  setVisibility: { method: 'POST', path: '/v2/service/{account}/{service}/visibility', needsToken: true },
  imageName: { method: 'GET', path: '/service/{account}/{service}/image-name', needsToken: true },
  terminateBackends: { method: 'POST', path: '/service/{account}/{service}/terminate-backends', needsToken: true },
  earliestCreateSpawnToken: { method: 'POST', path: '/user/{account}/service/{service}/token', needsToken: true },
  earliestTokenSpawn: { method: 'POST', path: '/token/{token}/spawn', needsToken: false },
  earliestRevokeSpawnToken: { method: 'DELETE', path: '/token/{token}', needsToken: true },
} as const satisfies Record<keyof Endpoints, { method: string; path: string; needsToken: boolean }>;
