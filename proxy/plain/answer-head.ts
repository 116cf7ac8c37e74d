/** Reads the heads of backends' answers, and makes the header lines that the client receives. */
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
  /** Whether the same head always has the same lines. Without a `Date`, the proxy adds the current time. */
  readonly isConstant: boolean;
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

/** The role of a header of an answer in the proxy. */
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
  // The length is rewritten without the blanks around it.
  return { rule: role === 'length' ? (value) => value : responseRuleOf(name), role };
});

interface ParsedHeaders {
  connection: string | undefined;
  length: string | undefined;
  coding: string | undefined;
  hasDate: boolean;
  hasPolicy: boolean;
}

/**
 * Reads the head at the start of a text, including the empty line at its end. Returns `undefined` if it is incomplete or not valid.
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
  const parsed: ParsedHeaders = {
    connection: undefined,
    length: undefined,
    coding: undefined,
    hasDate: false,
    hasPolicy: false,
  };
  const lines = clientLines(text, fields, { view, parsed });
  const framing = framingOf(parsed, status, method);
  const keepsAlive = framing !== 'until-close' && isKeptAlive(parsed.connection, isFirstVersion);
  // An answer without content has no length.
  const own = status < 200 || status === 204 ? lines.replace(/^content-length:.*\r\n/im, '') : lines;
  if (status < 200) return { end, status, lines: own, framing: 'none', keepsAlive, isConstant: false };
  return { end, status, lines: own + defaultLines(parsed), framing, keepsAlive, isConstant: parsed.hasDate };
}

/** The lines for the client, without those of the connection. */
function clientLines(
  text: string,
  { from, to }: { readonly from: number; readonly to: number },
  { view, parsed }: { readonly view: SessionView; readonly parsed: ParsedHeaders },
): string {
  let lines = '';
  let runFrom = from;
  for (let at = from; at < to;) {
    const colon = text.indexOf(':', at);
    const next = text.indexOf('\n', colon) + 1;
    const end = text.charCodeAt(next - 2) === 13 ? next - 2 : next - 1;
    const name = text.slice(at, colon);
    const { rule, role } = kindOf(name);
    if (role !== 'none') record(parsed, role, text.slice(colon + 1, end).trim());
    if (rule !== 'forward' || end !== next - 2) {
      lines += text.slice(runFrom, at);
      runFrom = next;
      const value = rule === 'drop' ? undefined : responseValue(rule, name, text.slice(colon + 1, end).trim(), view);
      if (value !== undefined) lines += `${name}: ${value}\r\n`;
    }
    at = next;
  }
  lines += text.slice(runFrom, to);
  if (parsed.connection === undefined || /^(?:keep-alive|close|)$/i.test(parsed.connection)) return lines;
  const kept = withoutOptions(text.slice(from, to), view);
  parsed.hasDate = /^date:/im.test(kept);
  parsed.hasPolicy = /^referrer-policy:/im.test(kept);
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

function record(parsed: ParsedHeaders, role: Role, value: string): void {
  if (role === 'length') {
    if (parsed.length !== undefined || !/^\d{1,15}$/.test(value)) throw new InvalidAnswer('The length is not valid');
    parsed.length = value;
  } else if (role === 'coding') {
    if (parsed.coding !== undefined || !/^chunked$/i.test(value)) throw new InvalidAnswer('The coding is not known');
    parsed.coding = value;
  } else if (role === 'connection') {
    parsed.connection = parsed.connection === undefined ? value : `${parsed.connection}, ${value}`;
  } else if (role === 'date') parsed.hasDate = true;
  else parsed.hasPolicy = true;
}

function framingOf({ coding, length }: ParsedHeaders, status: number, method: string): Framing {
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
function defaultLines({ hasDate, hasPolicy }: ParsedHeaders): string {
  return (hasPolicy ? '' : policyLine) + (hasDate ? '' : dateLine());
}

const policyLine = `Referrer-Policy: ${defaultReferrerPolicy}\r\n`;

function dateLine(): string {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== now.second) now = { second, line: `Date: ${new Date(second * 1_000).toUTCString()}\r\n` };
  return now.line;
}
