/** How answers of backends are read: as strictly as Node can, with one exception, and not without end. */
import type { ClientRequest } from 'node:http';

/**
 * Interim answers (1xx) that may precede an answer. Servers send one or two 103, or a 102 every few seconds while they work;
 * one that sends them without end would keep the process busy.
 */
export const maxInterimAnswers = 100;

/** Applies the rules to a request that has its connection and has not been sent. Ends it if its answer breaks them. */
export function limitAnswer(outgoing: ClientRequest): void {
  acceptBareLineFeeds(outgoing);
  let interim = 0;
  outgoing.on('information', () => {
    interim += 1;
    if (interim > maxInterimAnswers) outgoing.destroy(new Error('The backend sends interim answers without end'));
  });
}

/** The parser of one answer, as Node's client attaches it to a request together with the connection. */
interface AnswerParser {
  initialize(type: number, resource: object, maxHeadBytes: number, lenience: number): void;
  readonly constructor: { readonly RESPONSE?: number; readonly kLenientOptionalCRBeforeLF?: number };
}

/** Zero stands for Node's own limit. */
const defaultMaxHeadBytes = 0;

/**
 * Lets lines end in a bare LF, as small servers and CGI programs send them, and as nginx, Caddy and haproxy accept them.
 * Node's `insecureHTTPParser` would allow much more: a `Content-Length` beside chunks, control characters, folded lines. Its
 * parser knows this one leniency (https://github.com/nodejs/llhttp#llhttp_set_lenient_optional_cr_before_lf), but Node has no
 * option for it.
 */
function acceptBareLineFeeds(outgoing: ClientRequest): void {
  const { parser } = outgoing as { parser?: AnswerParser };
  const { RESPONSE, kLenientOptionalCRBeforeLF } = parser?.constructor ?? {};
  if (RESPONSE === undefined || kLenientOptionalCRBeforeLF === undefined) return;
  parser?.initialize(RESPONSE, {}, defaultMaxHeadBytes, kLenientOptionalCRBeforeLF);
}
