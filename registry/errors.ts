/** The registry's error catalogue: every refusal a client can meet, with its OCI code and HTTP status. */

export interface ErrorEntry {
  /** The code on the wire: OCI distribution-spec, "Error Codes". */
  readonly code: string;
  readonly status: number;
  readonly message: string;
  readonly when: string;
  /** In place of the usual one of the status. */
  readonly reasonPhrase?: string;
}

export const registryErrors = {
  'not-found': {
    code: 'UNSUPPORTED',
    status: 404,
    message: 'There is no such end-point',
    when: 'The path is none of the registry',
  },
  'method-not-allowed': {
    code: 'UNSUPPORTED',
    status: 405,
    message: 'This end-point does not take this method',
    when: 'The path exists and does not take the method',
  },
  'request-malformed': {
    code: 'UNSUPPORTED',
    status: 400,
    message: 'This is no HTTP/1.1 request',
    when: 'A head, or the framing of a body, breaks the grammar of HTTP; the connection is closed',
  },
  'head-too-slow': {
    code: 'UNSUPPORTED',
    status: 408,
    message: 'The head of the request took too long to arrive',
    when: 'A head has not arrived after 20 s; the connection is closed',
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
    message: 'A query parameter is repeated or not of the form it must have',
    when: 'A parameter that can stand once stands twice, or a number is not a number',
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
    message: 'Not a legal repository name, use <account>/<service> in lower-case letters and digits',
    when: 'The name breaks the grammar, or something is pushed to a name that no service can have',
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
    message: 'Not a digest this registry takes, use sha256 or sha512 in lower-case hexadecimal',
    when: 'A digest is malformed, or of an algorithm that is not taken',
  },
  'digest-mismatch': {
    code: 'DIGEST_INVALID',
    status: 400,
    message: 'The digest is not that of the content',
    when: 'The bytes received hash to another digest than was announced',
  },
  'tag-invalid': {
    code: 'MANIFEST_INVALID',
    status: 400,
    message: 'Not a legal tag, use up to 128 letters, digits, dots, hyphens and underscores',
    when: 'A manifest is pushed under something that is neither a tag nor a digest',
  },
  'too-many-tags': {
    code: 'UNSUPPORTED',
    status: 414,
    message: 'Too many tags in one request',
    when: 'A manifest is pushed with more tag parameters than are taken at once',
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
    when: 'A chunk comes out of order; the session goes on',
  },
  'upload-range-malformed': {
    code: 'BLOB_UPLOAD_INVALID',
    status: 400,
    message: 'Content-Range is not of the form <first>-<last>',
    when: 'The Content-Range of a chunk cannot be understood',
  },
  'size-invalid': {
    code: 'SIZE_INVALID',
    status: 400,
    message: 'The length announced is not the length of the content',
    when: 'Content-Range and Content-Length disagree, or a descriptor has another size than its blob',
  },
  'range-unsatisfiable': {
    code: 'UNSUPPORTED',
    status: 416,
    message: 'The blob has no such bytes',
    when: 'A range lies beyond the end of the blob',
  },
  'too-many-ranges': {
    code: 'UNSUPPORTED',
    status: 400,
    message: 'Too many ranges in one request, ask for fewer',
    when: 'More ranges of a blob are asked for at once than are sent in one answer',
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
    message: 'Not a manifest this registry takes',
    when: 'A manifest is not JSON, or not of the form its media type asks for',
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
    when: 'A manifest has more than 4 MiB',
  },
  'too-slow': {
    code: 'UNSUPPORTED',
    status: 408,
    message: 'Too little of the body came in two minutes, send the rest in another request',
    when: 'A body trickles in; what was received of an upload is kept',
  },
  'body-invalid': {
    code: 'UNSUPPORTED',
    status: 400,
    message: 'The body must be a form with a grant_type of password or refresh_token',
    when: 'A token is asked for with a body that is no such form',
  },
  unauthorized: {
    code: 'UNAUTHORIZED',
    status: 401,
    message: 'Log in first, with the account as user and an access token as password',
    when: 'There are no credentials, or a grant for nobody without the right',
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
    message: 'The access token does not give this right here',
    when: 'Basic credentials are right and lack the right, whether or not the repository exists',
  },
  'grant-denied': {
    code: 'DENIED',
    status: 401,
    message: 'The access token does not give this right here',
    when: 'A grant lacks the right; the client may ask for another, of the scope in the challenge, and shows this if it lacks it too',
  },
  'quota-exceeded': {
    code: 'DENIED',
    status: 403,
    message: 'This would exceed the storage quota of the account, delete images or ask for more',
    when: 'An upload, a mount or a manifest would take the account over its quota',
  },
  'blob-too-large': {
    code: 'DENIED',
    status: 413,
    message: 'The blob is larger than this registry takes, make smaller layers',
    when: 'An upload has more bytes, or announces more, than one blob may have',
  },
  'too-many-uploads': {
    code: 'TOOMANYREQUESTS',
    status: 429,
    message: 'Too many uploads of this account are open, finish or cancel some',
    when: 'An account begins another upload while it has as many open as it may',
  },
  'too-many-requests': {
    code: 'TOOMANYREQUESTS',
    status: 429,
    message: 'Too many requests, slow down',
    when: 'An account, or an address without one, sends more requests a second than it may',
  },
  'too-many-failures': {
    code: 'TOOMANYREQUESTS',
    status: 429,
    message: 'Too many logins have failed, wait before the next one',
    when: 'Logins of one user, or of many, have failed again and again from one address',
  },
  'no-space': {
    code: 'UNAVAILABLE',
    status: 507,
    message: 'The registry has no space left, push again when there is some',
    when: 'Less than the reserve is free on the disk behind the registry, or MongoDB’s disk is full',
    // Of a 5xx docker shows the reason phrase and no body, and with these words in it (ENOSPC) it does not retry for a minute:
    // https://github.com/moby/moby/blob/v28.5.2/distribution/errors.go
    reasonPhrase: 'Insufficient Storage: no space left on device',
  },
  unavailable: {
    code: 'UNAVAILABLE',
    status: 503,
    message: 'The registry is down for a moment, try again',
    when: 'The store or the blobs cannot be reached, or the registry is shutting down',
  },
  internal: {
    code: 'UNKNOWN',
    status: 500,
    message: 'Something went wrong on our side',
    when: 'Anything else; the log has the details under the ID',
  },
} as const satisfies Record<string, ErrorEntry>;

export type RegistryErrorName = keyof typeof registryErrors;

interface RegistryErrorOptions extends ErrorOptions {
  /** What exactly was wrong: sent to the client. */
  readonly detail?: string;
  /** Headers of the answer, beside the usual ones. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request is refused, with an entry of the catalogue. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly entry: RegistryErrorName;
  readonly detail: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(entry: RegistryErrorName, options: RegistryErrorOptions = {}) {
    super(registryErrors[entry].message, options);
    this.entry = entry;
    this.detail = options.detail;
    this.headers = options.headers ?? {};
  }
}
