/** Every error that the registry answers, with its OCI code and HTTP status. */

export interface ErrorEntry {
  /** The code on the wire: OCI distribution-spec, "Error Codes". */
  readonly code: string;
  readonly status: number;
  readonly message: string;
  readonly when: string;
  /** Replaces the standard reason phrase of the status. */
  readonly reasonPhrase?: string;
}

export const registryErrors = {
  'not-found': {
    code: 'UNSUPPORTED',
    status: 404,
    message: 'There is no such endpoint',
    when: 'The registry has no such path',
  },
  'method-not-allowed': {
    code: 'UNSUPPORTED',
    status: 405,
    message: 'This endpoint does not support this method',
    when: 'The path exists and does not support the method',
  },
  'request-malformed': {
    code: 'UNSUPPORTED',
    status: 400,
    message: 'The request is not valid HTTP/1.1',
    when: 'The head, or the framing of the body, is not valid HTTP; the connection is closed',
  },
  'head-too-slow': {
    code: 'UNSUPPORTED',
    status: 408,
    message: 'The head of the request took too long to arrive',
    when: 'The head has not arrived after 20 s; the connection is closed',
  },
  'head-too-large': {
    code: 'UNSUPPORTED',
    status: 431,
    message: 'The head of the request is too large, send at most 32 KiB',
    when: 'The request line and headers are larger than 32 KiB; the connection is closed',
  },
  'parameter-invalid': {
    code: 'UNSUPPORTED',
    status: 400,
    message: 'A query parameter is repeated or malformed',
    when: 'A parameter that is allowed once occurs twice, or a numeric parameter is not a number',
  },
  'host-invalid': {
    code: 'UNSUPPORTED',
    status: 400,
    message: 'The Host header is missing or not a host name',
    when: 'No public URL is configured and the challenge cannot be made from the Host header',
  },
  'name-invalid': {
    code: 'NAME_INVALID',
    status: 400,
    message: 'Invalid repository name, use <account>/<service> in lower-case letters and digits',
    when: 'The name is malformed, or a client pushes to a name that no service can have',
  },
  'name-unknown': {
    code: 'NAME_UNKNOWN',
    status: 404,
    message: 'There is no such repository',
    when: 'The service does not exist, or was deleted',
  },
  'digest-invalid': {
    code: 'DIGEST_INVALID',
    status: 400,
    message: 'Invalid or unsupported digest, use sha256 or sha512 in lower-case hexadecimal',
    when: 'A digest is malformed, or of an unsupported algorithm',
  },
  'digest-mismatch': {
    code: 'DIGEST_INVALID',
    status: 400,
    message: 'The digest does not match the content',
    when: 'The received bytes have another digest than the announced one',
  },
  'tag-invalid': {
    code: 'MANIFEST_INVALID',
    status: 400,
    message: 'Invalid tag, use up to 128 letters, digits, dots, hyphens and underscores',
    when: 'A manifest is pushed to a reference that is neither a tag nor a digest',
  },
  'too-many-tags': {
    code: 'UNSUPPORTED',
    status: 414,
    message: 'Too many tags in one request',
    when: 'A manifest is pushed with more tag parameters than one request may have',
  },
  'blob-unknown': {
    code: 'BLOB_UNKNOWN',
    status: 404,
    message: 'There is no such blob in this repository',
    when: 'The blob was never pushed to this repository, or was deleted',
  },
  'upload-unknown': {
    code: 'BLOB_UPLOAD_UNKNOWN',
    status: 404,
    message: 'There is no such upload in this repository',
    when: 'The upload session never existed, has ended, or belongs to another repository',
  },
  'upload-busy': {
    code: 'BLOB_UPLOAD_INVALID',
    status: 409,
    message: 'Another request is writing to this upload',
    when: 'Two requests write to one upload session at the same time',
  },
  'upload-range': {
    code: 'BLOB_UPLOAD_INVALID',
    status: 416,
    message: 'The chunk does not begin where the upload ends, see the Range header',
    when: 'A chunk arrives out of order; the session continues',
  },
  'upload-range-malformed': {
    code: 'BLOB_UPLOAD_INVALID',
    status: 400,
    message: 'Content-Range is not of the form <first>-<last>',
    when: 'The Content-Range of a chunk is malformed',
  },
  'size-invalid': {
    code: 'SIZE_INVALID',
    status: 400,
    message: 'The announced length does not match the content',
    when: 'Content-Range and Content-Length disagree, or a descriptor has another size than its blob',
  },
  'range-unsatisfiable': {
    code: 'UNSUPPORTED',
    status: 416,
    message: 'The range is beyond the end of the blob',
    when: 'A range is beyond the end of the blob',
  },
  'too-many-ranges': {
    code: 'UNSUPPORTED',
    status: 400,
    message: 'Too many ranges in one request, request fewer',
    when: 'A request has more ranges of a blob than one response may contain',
  },
  'manifest-unknown': {
    code: 'MANIFEST_UNKNOWN',
    status: 404,
    message: 'There is no such manifest in this repository',
    when: 'No manifest has this tag or digest in this repository',
  },
  'manifest-invalid': {
    code: 'MANIFEST_INVALID',
    status: 400,
    message: 'The manifest is invalid',
    when: 'A manifest is not JSON, or does not have the form that its media type requires',
  },
  'manifest-blob-unknown': {
    code: 'MANIFEST_BLOB_UNKNOWN',
    status: 404,
    message: 'The manifest refers to content that is not in this repository',
    when: 'A config, layer or child manifest has not been pushed to this repository',
  },
  'manifest-too-large': {
    code: 'SIZE_INVALID',
    status: 413,
    message: 'The manifest is too large',
    when: 'A manifest is larger than 4 MiB',
  },
  'too-slow': {
    code: 'UNSUPPORTED',
    status: 408,
    message: 'Too little of the body arrived in two minutes, send the rest in another request',
    when: 'A body arrives too slowly; the received part of an upload is kept',
  },
  'body-invalid': {
    code: 'UNSUPPORTED',
    status: 400,
    message: 'The body must be a form with a grant_type of password or refresh_token',
    when: 'A token is requested with a body that is not such a form',
  },
  unauthorized: {
    code: 'UNAUTHORIZED',
    status: 401,
    message: 'Log in first, with the account as user and an access token as password',
    when: 'The request has no credentials, or an anonymous grant without the right',
  },
  'credentials-wrong': {
    code: 'UNAUTHORIZED',
    status: 401,
    message: 'Wrong credentials, use the account as user and an access token as password',
    when: 'The account or access token is unknown, expired or revoked',
  },
  denied: {
    code: 'DENIED',
    status: 403,
    message: 'The access token does not allow this request',
    when: 'Basic credentials are valid and lack the right, whether or not the repository exists',
  },
  'grant-denied': {
    code: 'DENIED',
    status: 401,
    message: 'The access token does not allow this request',
    when: 'A grant lacks the right; the client may request another one, with the scope in the challenge, and shows this error if that grant lacks the right too',
  },
  'quota-exceeded': {
    code: 'DENIED',
    status: 403,
    message: 'This would exceed the storage quota of the account, delete images or ask an operator for a higher quota',
    when: 'An upload, a mount or a manifest would exceed the quota of the account',
  },
  'blob-too-large': {
    code: 'DENIED',
    status: 413,
    message: 'The blob is larger than this registry accepts, make smaller layers',
    when: 'An upload has, or announces, more bytes than one blob may have',
  },
  'too-many-uploads': {
    code: 'TOOMANYREQUESTS',
    status: 429,
    message: 'This account has too many open uploads, finish or cancel some',
    when: 'An account starts an upload when it already has the maximum number of open uploads',
  },
  'too-many-requests': {
    code: 'TOOMANYREQUESTS',
    status: 429,
    message: 'Too many requests, slow down',
    when: 'An account, or an address without an account, exceeds its limit of requests per second',
  },
  'too-many-bodies': {
    code: 'TOOMANYREQUESTS',
    status: 429,
    message: 'Too many manifests are being pushed at the same time, try again in a moment',
    when: 'Other manifests, or forms for tokens, that have not arrived completely use the memory for them: of the account, of the address without an account, or of the process',
  },
  'too-many-failures': {
    code: 'TOOMANYREQUESTS',
    status: 429,
    message: 'Too many logins have failed, wait before the next one',
    when: 'Logins of one user, or of many users, have failed repeatedly from one address',
  },
  'no-space': {
    code: 'UNAVAILABLE',
    status: 507,
    message: 'The registry has no space left, push again when there is space',
    when: 'Less than the reserve is free on the disk of the registry, or MongoDB’s disk is full',
    // For a 5xx, docker shows the reason phrase and not the body. With these words (ENOSPC), it does not retry for a minute:
    // https://github.com/moby/moby/blob/v28.5.2/distribution/errors.go
    reasonPhrase: 'Insufficient Storage: no space left on device',
  },
  unavailable: {
    code: 'UNAVAILABLE',
    status: 503,
    message: 'The registry is temporarily unavailable, try again',
    when: 'The store or the blobs are unavailable, or the registry is shutting down',
  },
  internal: {
    code: 'UNKNOWN',
    status: 500,
    message: 'Internal error of the registry',
    when: 'Anything else; the log has the details under the ID',
  },
} as const satisfies Record<string, ErrorEntry>;

export type RegistryErrorName = keyof typeof registryErrors;
