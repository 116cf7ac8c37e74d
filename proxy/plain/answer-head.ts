/** The heads of backends' answers, and what a client receives instead of them. */
import { perName } from '../headers.ts';
import { defaultReferrerPolicy, responseHeaders, responseRuleOf, responseValue } from '../response-headers.ts';
import type { ResponseRule } from '../response-headers.ts';
import type { SessionView } from '../session-view.ts';

/** How the body of an answer ends. */
export type Framing = 'none' | 'chunked' | 'until-close' | { readonly length: number };

/** The head of an answer. */
export interface AnswerHead {
  /** Where it ends in the text that was read. */
  readonly end: number;
  readonly status: number;
  /** The header lines for the client, without those of the connection. */
  readonly lines: string;
  readonly framing: Framing;
  /** Whether the backend keeps its connection open after the answer. */
  readonly keepsAlive: boolean;
  /** Whether the same head has the same lines at any time. */
  readonly isLasting: boolean;
}

/** An answer that is not valid HTTP, or whose end is ambiguous. */
export class InvalidAnswer extends Error {
  override readonly name = 'InvalidAnswer';
}

/**
 * A whole head at the start of a text, with lines that end in CRLF or, as small servers and CGI programs write them, in LF. There are
 * no control characters and no folded lines.
 */
const answerHead =
  /HTTP\/1\.[01] [1-9]\d\d(?: [\t -~\x80-\xff]*)?\r?\n(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*\r?\n)*\r?\n/y;

/** Positions in such a head. */
const minorAt = 'HTTP/1.'.length;
const statusAt = 'HTTP/1.1 '.length;

/** What the proxy itself does with a header of an answer. */
type Role = 'none' | 'length' | 'coding' | 'connection' | 'date' | 'policy';

const roles: ReadonlyMap<string, Role> = new Map<string, Role>([
  ['content-length', 'length'],
  ['transfer-encoding', 'coding'],
  ['connection', 'connection'],
  ['date', 'date'],
  ['referrer-policy', 'policy'],
]);

interface HeaderKind {
  readonly rule: ResponseRule;
  readonly role: Role;
}

const kindOf = perName((name): HeaderKind => {
  const role = roles.get(name) ?? 'none';
  // It is written anew, without the blanks that are allowed around it.
  return { rule: role === 'length' ? (value) => value : responseRuleOf(name), role };
});

interface Facts {
  connection: string | undefined;
  length: string | undefined;
  coding: string | undefined;
  hasDate: boolean;
  hasPolicy: boolean;
}

/**
 * Reads the head at the start of a text, including the empty line at its end. `undefined`: it is not whole, or not valid.
 *
 * @param method - that of the request
 * @param view - how the client sees the session
 * @throws InvalidAnswer
 */
export function readAnswerHead(text: string, method: string, view: SessionView): AnswerHead | undefined {
  answerHead.lastIndex = 0;
  if (!answerHead.test(text)) return undefined;
  const end = answerHead.lastIndex;
  const status = Number(text.slice(statusAt, statusAt + 3));
  const isFirstVersion = text[minorAt] === '0';
  const fields = { from: text.indexOf('\n') + 1, to: end - (text[end - 2] === '\r' ? 2 : 1) };
  const facts: Facts = {
    connection: undefined,
    length: undefined,
    coding: undefined,
    hasDate: false,
    hasPolicy: false,
  };
  const lines = clientLines(text, fields, { view, facts });
  const framing = framingOf(facts, status, method);
  const keepsAlive = framing !== 'until-close' && isKeptAlive(facts.connection, isFirstVersion);
  // An answer without content has no length.
  const own = status < 200 || status === 204 ? lines.replace(/^content-length:.*\r\n/im, '') : lines;
  if (status < 200) return { end, status, lines: own, framing: 'none', keepsAlive, isLasting: false };
  return { end, status, lines: own + defaultLines(facts), framing, keepsAlive, isLasting: facts.hasDate };
}

/** The lines for the client, without those of the connection. */
function clientLines(
  text: string,
  { from, to }: { readonly from: number; readonly to: number },
  { view, facts }: { readonly view: SessionView; readonly facts: Facts },
): string {
  let lines = '';
  let runFrom = from;
  for (let at = from; at < to;) {
    const colon = text.indexOf(':', at);
    const next = text.indexOf('\n', colon) + 1;
    const end = text.charCodeAt(next - 2) === 13 ? next - 2 : next - 1;
    const name = text.slice(at, colon);
    const { rule, role } = kindOf(name);
    if (role !== 'none') keep(facts, role, text.slice(colon + 1, end).trim());
    if (rule !== 'forward' || end !== next - 2) {
      lines += text.slice(runFrom, at);
      runFrom = next;
      const value = rule === 'drop' ? undefined : responseValue(rule, name, text.slice(colon + 1, end).trim(), view);
      if (value !== undefined) lines += `${name}: ${value}\r\n`;
    }
    at = next;
  }
  lines += text.slice(runFrom, to);
  if (facts.connection === undefined || /^(?:keep-alive|close|)$/i.test(facts.connection)) return lines;
  const kept = withoutOptions(text.slice(from, to), view);
  facts.hasDate = /^date:/im.test(kept);
  facts.hasPolicy = /^referrer-policy:/im.test(kept);
  return kept;
}

/** The lines for an answer whose `Connection` header names other headers. */
function withoutOptions(fields: string, view: SessionView): string {
  const raw = fields.split(/\r?\n/).slice(0, -1);
  const pairs = raw.flatMap((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  let lines = '';
  const headers = responseHeaders(pairs, view);
  for (let i = 0; i + 1 < headers.length; i += 2) {
    lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  }
  return lines;
}

function keep(facts: Facts, role: Role, value: string): void {
  if (role === 'length') {
    if (facts.length !== undefined || !/^\d{1,15}$/.test(value)) throw new InvalidAnswer('The length is not valid');
    facts.length = value;
  } else if (role === 'coding') {
    if (facts.coding !== undefined || !/^chunked$/i.test(value)) throw new InvalidAnswer('The coding is not known');
    facts.coding = value;
  } else if (role === 'connection') {
    facts.connection = facts.connection === undefined ? value : `${facts.connection}, ${value}`;
  } else if (role === 'date') facts.hasDate = true;
  else facts.hasPolicy = true;
}

function framingOf({ coding, length }: Facts, status: number, method: string): Framing {
  if (coding !== undefined && length !== undefined) throw new InvalidAnswer('The answer has a length and chunks');
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return 'none';
  if (coding !== undefined) return 'chunked';
  return length === undefined ? 'until-close' : { length: Number(length) };
}

function isKeptAlive(connection: string | undefined, isFirstVersion: boolean): boolean {
  if (connection === undefined) return !isFirstVersion;
  const options = connection
    .toLowerCase()
    .split(',')
    .map((option) => option.trim());
  return isFirstVersion ? options.includes('keep-alive') : !options.includes('close');
}

let now = { second: 0, line: '' };

/** The headers that an answer gets if the backend has not set them. */
function defaultLines({ hasDate, hasPolicy }: Facts): string {
  return (hasPolicy ? '' : policyLine) + (hasDate ? '' : dateLine());
}

const policyLine = `Referrer-Policy: ${defaultReferrerPolicy}\r\n`;

function dateLine(): string {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== now.second) now = { second, line: `Date: ${new Date(second * 1_000).toUTCString()}\r\n` };
  return now.line;
}
