/** The service API's error catalogue: every code that a client can get, its HTTP status, and when it is sent. */
import { z } from 'zod';

interface ErrorEntry {
  readonly status: number;
  readonly when: string;
}

export const serviceErrors = {
  BadRequest: { status: 400, when: 'The body, a parameter or the path is invalid for the endpoint' },
  Unauthorized: { status: 401, when: 'The access token, the password or the ID token is missing or not valid' },
  Forbidden: {
    status: 403,
    when: 'The caller lacks the scope or the role, the code is wrong, no trust rule allows the deployment, or a page of another site sent the request',
  },
  QuotaExceeded: { status: 403, when: 'The account has used up its storage quota' },
  NotFound: { status: 404, when: 'There is no such path' },
  AccountNotFound: { status: 404, when: 'The account does not exist or is not visible to the access token' },
  UserNotFound: { status: 404, when: 'There is no such user, or the user is not a member of the account' },
  CliLoginNotFound: { status: 404, when: 'There is no such log-in of a command line, or it has ended' },
  TrustRuleNotFound: { status: 404, when: 'The account has no such trust rule' },
  TokenNotFound: { status: 404, when: 'There is no such access token, or it is not visible to the caller' },
  NodeNotFound: { status: 404, when: 'There is no such node' },
  ServiceNotFound: { status: 404, when: 'The service does not exist or is not visible to the access token' },
  EnvironmentNotFound: { status: 404, when: 'The service has no environment of this name' },
  BackendNotFound: { status: 404, when: 'The backend does not exist or is not visible to the access token' },
  SpawnTokenNotFound: {
    status: 404,
    when: 'The spawn token does not exist, was revoked, or is not visible to the access token',
  },
  ImageNotFound: { status: 404, when: 'The service has no image with this tag or digest' },
  KeyNotHeld: { status: 404, when: 'No running backend holds the key, and the request does not allow spawning' },
  MethodNotAllowed: { status: 405, when: 'The path exists and does not support this method' },
  NotAcceptable: { status: 406, when: 'The endpoint sends an event stream, and the client does not accept one' },
  RequestTimeout: { status: 408, when: 'The head of the request, or its body, has not arrived after 20 s' },
  ServiceExists: { status: 409, when: 'The account has a service of this name' },
  EnvironmentExists: { status: 409, when: 'The service has an environment of this name' },
  TooManyEnvironments: { status: 409, when: 'The service has the maximum number of environments' },
  AccountExists: { status: 409, when: 'There is an account of this name' },
  UserExists: { status: 409, when: 'There is a user with this e-mail address' },
  LastAdministrator: { status: 409, when: 'The platform would be left without an administrator' },
  LastOwner: { status: 409, when: 'The account would be left without an owner' },
  NoImage: { status: 409, when: 'The service has no image yet' },
  BackendNotRunning: { status: 409, when: 'The backend has ended' },
  MountsDisabled: {
    status: 409,
    when: 'The request asks for a mount, and mounts are disabled (`BERTH_MOUNT_FOLDER=off`)',
  },
  PayloadTooLarge: { status: 413, when: 'The body is larger than the endpoint accepts' },
  UnsupportedMediaType: { status: 415, when: 'The endpoint does not accept the content type of the body' },
  MisdirectedRequest: { status: 421, when: 'The request names the host of a session instead of the host of the API' },
  HeadTooLarge: { status: 431, when: 'The request line and headers are larger than 16 KiB' },
  TooManyBackends: { status: 429, when: 'The account has reached its limit of running backends' },
  TooManyRequests: { status: 429, when: 'Too many requests in too short a time' },
  InternalError: { status: 500, when: 'Internal error; the log has the details under the ID' },
  ImagesElsewhere: {
    status: 501,
    when: 'This process of the platform cannot reach the bytes of images; another process can',
  },
  Unavailable: { status: 503, when: 'A part of the platform is unavailable or starting; try again' },
  InsufficientStorage: { status: 507, when: 'The platform has no space left for images' },
} as const satisfies Record<string, ErrorEntry>;

export type ServiceErrorCode = keyof typeof serviceErrors;

export const errorBody = z
  .strictObject({
    error: z.strictObject({
      code: z.string().meta({ description: 'A stable code from the catalogue', examples: ['KeyNotHeld'] }),
      message: z.string().meta({ description: 'One sentence that says what to do' }),
      status: z.int().meta({ description: 'The HTTP status' }),
      id: z.string().meta({ description: 'The request ID, which is in the log too' }),
    }),
  })
  .meta({ id: 'Error', description: 'The response to every failed request' });
