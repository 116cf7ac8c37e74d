/** Maps errors to responses. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ZodError } from 'zod';
import { serviceErrors } from '../contract/errors.ts';
import type { ServiceErrorCode } from '../contract/errors.ts';
import { BodyError } from '../core/http/json-bodies.ts';
import { jsonAnswer } from '../core/http/json.ts';
import { answerEarly } from '../core/http/linger.ts';
import { requestId } from '../core/http/request-id.ts';
import type { Unreadable } from '../core/http/gated-server.ts';
import type { Log } from '../core/log/log.ts';
import { StoreError } from '../core/store/store.ts';
import { ApiError } from '../model/api-error.ts';
import type { Api } from './dependencies.ts';

/** How long a client should wait before it retries when a component is unavailable or overloaded. */
const retryAfterSeconds = 2;

/** Sets when a client may retry a request that is answered with 429 or 503. */
export function setRetryAfter(response: ServerResponse, status: number, error: unknown): void {
  if (status !== 429 && status !== 503) return;
  const known = error instanceof ApiError ? error.retryAfterSeconds : undefined;
  response.setHeader('retry-after', known ?? retryAfterSeconds);
}

/** Answers a request that failed. An unexpected error is logged with the ID of the request, and the response contains only the ID. */
export async function answerError(
  { log, openRequests }: Pick<Api, 'log' | 'openRequests'>,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  error: unknown,
): Promise<void> {
  const id = requestId(request, response);
  const { code, message } = explain(error);
  const { status } = serviceErrors[code];
  if (status >= 500) log.error({ request: id, err: error }, 'Request failed');
  if (response.headersSent) {
    response.destroy();
    return;
  }
  if (status === 401) response.setHeader('www-authenticate', 'Bearer');
  setRetryAfter(response, status, error);
  const answer = jsonAnswer(status, { error: { code, message, status, id } });
  await answerEarly({ request, response }, answer, openRequests.closing);
}

/** Returns a function for the body of the answer to an invalid request. */
export function explainUnreadable(log: Log): (problem: Unreadable) => object {
  return (problem) => {
    const id = randomUUID();
    const { code, message } = unreadable[problem];
    log.info({ request: id, code }, 'Cannot read a request');
    return { error: { code, message, status: serviceErrors[code].status, id } };
  };
}

const unreadable: Readonly<Record<Unreadable, Explanation>> = {
  malformed: { code: 'BadRequest', message: 'The request is not valid HTTP/1.1' },
  'head-too-slow': { code: 'RequestTimeout', message: 'The head of the request took too long to arrive' },
  'head-too-large': { code: 'HeadTooLarge', message: 'The head of the request is too large, send at most 16 KiB' },
};

interface Explanation {
  readonly code: ServiceErrorCode;
  readonly message: string;
}

/** The code and the message of the answer to a request that failed. */
export function explain(error: unknown): Explanation {
  if (error instanceof ApiError) return { code: error.code, message: error.message };
  if (error instanceof ZodError) return { code: 'BadRequest', message: describeProblems(error) };
  if (error instanceof StoreError && error.code === 'unavailable') {
    const why = error.isFull ? 'The disk is full, try again when there is space' : undefined;
    return { code: 'Unavailable', message: why ?? 'The store cannot be reached, try again in a moment' };
  }
  // A part of the path cannot be decoded. Express's own message would contain that part, and so perhaps a token.
  if (error instanceof URIError) return { code: 'BadRequest', message: 'The path: Not well-formed percent-encoding' };
  if (error instanceof BodyError) return { code: bodyProblems[error.code], message: error.message };
  return { code: 'InternalError', message: 'Internal error of the platform, report the request ID' };
}

const bodyProblems: Readonly<Record<BodyError['code'], ServiceErrorCode>> = {
  'wrong-type': 'UnsupportedMediaType',
  malformed: 'BadRequest',
  cut: 'BadRequest',
  'too-large': 'PayloadTooLarge',
  'too-slow': 'RequestTimeout',
  'too-many': 'TooManyRequests',
};

/** Names each field with its problem: `spawn.max_idle_seconds: Too small: expected number to be >=1`. */
function describeProblems(error: ZodError): string {
  return error.issues.flatMap((issue) => describeIssue(issue, [])).join('; ');
}

function describeIssue(issue: ZodError['issues'][number], prefix: readonly PropertyKey[]): string[] {
  const path = [...prefix, ...issue.path];
  // Without alternatives, the field that chooses between them is at fault, and the message says so.
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    const closest = issue.errors.toSorted((a, b) => depthOf(b) - depthOf(a))[0] ?? [];
    return closest.flatMap((inner) => describeIssue(inner, path));
  }
  const field = path.map(String).join('.');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `${field === '' ? key : `${field}.${key}`}: There is no such field`);
  }
  return [`${field === '' ? 'The body' : field}: ${issue.message}`];
}

/** The alternative of a union with the deepest problem is probably the one that the client meant. */
function depthOf(issues: ZodError['issues']): number {
  return Math.max(...issues.map((issue) => issue.path.length + (issue.code === 'unrecognized_keys' ? 1 : 0)), 0);
}
