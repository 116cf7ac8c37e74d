/**
 * The heads of plain requests. A head is plain if every HTTP parser reads it in the same way, and if the proxy only has to forward it.
 * Any other head is not an error here: Node's HTTP server handles it.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { perName } from '../headers.ts';
import { methodsWithBody, requestRuleOf } from '../request-headers.ts';
import type { RequestRule } from '../request-headers.ts';
import { maxHeaders } from '../request-syntax.ts';

/** A plain request. */
export interface PlainRequest {
  readonly method: string;
  /** Path and query, byte for byte. */
  readonly target: string;
  /** The header lines that are forwarded whatever their values are, byte for byte. */
  readonly lines: string;
  /** The headers whose values decide what is forwarded. */
  readonly checked: readonly CheckedHeader[];
  /** The headers that the proxy itself reads, by name in lower case. */
  readonly headers: IncomingHttpHeaders;
  readonly body: RequestBody;
  /** Whether the client closes the connection after the answer. */
  readonly isLast: boolean;
}

export interface CheckedHeader {
  readonly rule: RequestRule;
  readonly name: string;
  readonly value: string;
}

/** The length of a body in bytes, or that it is sent in chunks. */
export type RequestBody = number | 'chunked';

/**
 * The whole head of a plain request. Methods, targets and names have the characters of RFC 9110 and no others. A value has no control
 * characters, at most one space before it, and no blank after it. Each line ends with CRLF, and only with that.
 */
const plainHead =
  /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) \/[!"$-~]* HTTP\/1\.1\r\n(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:(?: ?[!-~\x80-\xff][\t -~\x80-\xff]*(?<![\t ])| ?)\r\n)+\r\n$/;

/** The target of a plain request. */
const plainTarget = /^\/[!"$-~]*$/;

/** The beginning of such a head: an unfinished request line, or whole lines and one that is not. */
const plainStart =
  /^(?:[A-Z]{1,7}(?: (?:\/[!"$-~]*(?: [HTP/1.]{0,8}\r?)?)?)?|[A-Z]{3,7} \/[!"$-~]* HTTP\/1\.1\r\n(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:(?: ?[!-~\x80-\xff][\t -~\x80-\xff]*(?<![\t ])| ?)\r\n)*[^\r\n]*\r?)$/;

/** Whether a plain request may have this target. */
export function isPlainTarget(text: string): boolean {
  return plainTarget.test(text);
}

/** Whether a text may become a plain head when more of it arrives. */
export function isStartOfPlainHead(text: string): boolean {
  return plainStart.test(text);
}

/** The role of a header: it frames the message, the proxy reads it, or it makes the request not plain. */
type Role = 'none' | 'host' | 'length' | 'coding' | 'connection' | 'read' | 'list' | 'unusual';

interface HeaderKind {
  readonly name: string;
  readonly rule: RequestRule;
  readonly role: Role;
}

const roles: ReadonlyMap<string, Role> = new Map<string, Role>([
  ['host', 'host'],
  ['content-length', 'length'],
  ['transfer-encoding', 'coding'],
  ['connection', 'connection'],
  ['accept', 'list'],
  ['x-forwarded-for', 'list'],
  ['x-forwarded-host', 'list'],
  ['x-forwarded-proto', 'list'],
  ['authorization', 'read'],
  ['cookie', 'read'],
  ['expect', 'unusual'],
  ['http2-settings', 'unusual'],
  ['te', 'unusual'],
  ['trailer', 'unusual'],
  ['upgrade', 'unusual'],
]);

/** Names that some backends read as a header that frames a message: CGI maps punctuation to one character. */
const framingInDisguise = /^(?:content.length|transfer.encoding)$/;

const kindOf = perName((name): HeaderKind => {
  const role = roles.get(name) ?? (framingInDisguise.test(name) ? 'unusual' : 'none');
  return { name, rule: requestRuleOf(name), role };
});

/** Reads a head, including the empty line at its end. Returns `undefined` if it is not plain. */
export function readRequestHead(head: string): PlainRequest | undefined {
  if (!plainHead.test(head)) return undefined;
  const methodEnd = head.indexOf(' ');
  const targetEnd = head.indexOf(' ', methodEnd + 1);
  const fields = readFields(head, head.indexOf('\r\n', targetEnd) + 2);
  const body = fields && bodyOf(fields.headers);
  if (!fields || body === undefined) return undefined;
  const { lines, checked, headers, isLast } = fields;
  const method = head.slice(0, methodEnd);
  const target = head.slice(methodEnd + 1, targetEnd);
  return { method, target, lines: lines + framingOf(method, headers), checked, headers, body, isLast };
}

type Fields = Pick<PlainRequest, 'lines' | 'checked' | 'headers' | 'isLast'>;

/** Reads the header lines from a position to the end of the head. */
function readFields(head: string, start: number): Fields | undefined {
  let lines = '';
  let isLast = false;
  const checked: CheckedHeader[] = [];
  const headers: IncomingHttpHeaders = {};
  let count = 0;
  // The start of the current run of lines that are forwarded unchanged.
  let runFrom = start;
  for (let at = start; at < head.length - 2;) {
    const colon = head.indexOf(':', at);
    const end = head.indexOf('\r\n', colon);
    const kind = kindOf(head.slice(at, colon));
    const { rule, role } = kind;
    count += 1;
    if (role !== 'none') {
      const value = valueOf(head, colon, end);
      if (role === 'unusual' || !accept(headers, kind, value)) return undefined;
      if (role === 'connection') isLast = value.length === 'close'.length;
    }
    if (rule !== 'forward') {
      lines += head.slice(runFrom, at);
      runFrom = end + 2;
      if (rule !== 'drop') checked.push({ rule, name: head.slice(at, colon), value: valueOf(head, colon, end) });
    }
    at = end + 2;
  }
  if (headers.host === undefined || count > maxHeaders) return undefined;
  return { lines: lines + head.slice(runFrom, -2), checked, headers, isLast };
}

function valueOf(head: string, colon: number, end: number): string {
  return head.slice(head.startsWith(' ', colon + 1) ? colon + 2 : colon + 1, end);
}

/** Stores a header that the proxy reads. Returns whether its value is plain. */
function accept(headers: IncomingHttpHeaders, { name, role }: HeaderKind, value: string): boolean {
  const before = headers[name];
  if (role === 'list' && before !== undefined) {
    headers[name] = `${String(before)}, ${value}`;
    return true;
  }
  headers[name] = value;
  if (before !== undefined) return false;
  if (role === 'host') return /^[\w.:[\]-]+$/.test(value);
  if (role === 'length') return /^\d{1,15}$/.test(value);
  if (role === 'coding') return /^chunked$/i.test(value);
  return role !== 'connection' || /^(?:keep-alive|close)$/i.test(value);
}

function bodyOf(headers: IncomingHttpHeaders): RequestBody | undefined {
  const { 'content-length': length, 'transfer-encoding': coding } = headers;
  if (coding === undefined) return Number(length ?? 0);
  return length === undefined ? 'chunked' : undefined;
}

/** The line that the proxy adds to frame the message. */
function framingOf(
  method: string,
  { 'content-length': length, 'transfer-encoding': coding }: IncomingHttpHeaders,
): string {
  if (coding !== undefined) return 'transfer-encoding: chunked\r\n';
  return length === undefined && methodsWithBody.has(method) ? 'content-length: 0\r\n' : '';
}
