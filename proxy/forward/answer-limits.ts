/** Limits for the answers of backends: parsed as strictly as Node can, with one exception, and with bounded interim answers. */
import type { ClientRequest } from 'node:http';

/**
 * How many interim answers (1xx) may precede an answer. Servers send one or two 103, or a 102 every few seconds while they work. An
 * endless sequence would keep the process busy.
 */
export const maxInterimAnswers = 100;

/** Limits the answer to a request that has its connection and is not sent yet. Destroys the request if the answer exceeds a limit. */
export function limitAnswer(outgoing: ClientRequest): void {
  acceptBareLineFeeds(outgoing);
  let interim = 0;
  outgoing.on('information', () => {
    interim += 1;
    if (interim > maxInterimAnswers) outgoing.destroy(new Error('The backend sends too many interim answers'));
  });
}

/** The parser that Node's client attaches to a request together with its connection. */
interface AnswerParser {
  initialize(type: number, resource: object, maxHeadBytes: number, lenience: number): void;
  readonly constructor: { readonly RESPONSE?: number; readonly kLenientOptionalCRBeforeLF?: number };
}

/** Zero means Node's own limit. */
const defaultMaxHeadBytes = 0;

/**
 * Lets lines end in a bare LF, which small servers and CGI programs send, and which nginx, Caddy and haproxy accept. Node's option
 * `insecureHTTPParser` would allow much more: a `Content-Length` with chunks, control characters, folded lines. Its parser has a flag
 * for this alone (https://github.com/nodejs/llhttp#llhttp_set_lenient_optional_cr_before_lf), but Node has no option for it.
 */
function acceptBareLineFeeds(outgoing: ClientRequest): void {
  const { parser } = outgoing as { parser?: AnswerParser };
  const { RESPONSE, kLenientOptionalCRBeforeLF } = parser?.constructor ?? {};
  if (RESPONSE === undefined || kLenientOptionalCRBeforeLF === undefined) return;
  parser?.initialize(RESPONSE, {}, defaultMaxHeadBytes, kLenientOptionalCRBeforeLF);
}
