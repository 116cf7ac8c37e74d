/** Limits how many invalid tokens a network may send, across processes. */
import type { IncomingMessage } from 'node:http';
import { clientAddress, networkOf } from '../core/http/client-address.ts';
import { ApiError } from '../model/api-error.ts';
import type { Api } from './dependencies.ts';

export type FailedChecks = Pick<Api, 'failures' | 'behindLoadBalancer' | 'invalidTokensPerMinute'>;

/**
 * Counts a failed check of a token. Returns the error for the response: the failure, or `TooManyRequests` if the network has sent too
 * many invalid tokens. Valid tokens are still accepted: tokens cannot be guessed, and clients with valid ones may share the network
 * with a program that repeats an expired one.
 */
export async function failedCheck(api: FailedChecks, request: IncomingMessage, failure: ApiError): Promise<ApiError> {
  const perMinute = api.invalidTokensPerMinute;
  if (perMinute === 0) return failure;
  const network = networkOf(clientAddress(request, api.behindLoadBalancer));
  const limit = { capacity: perMinute, seconds: 60 };
  const retryAfterSeconds = await api.failures.count([{ id: `tokens from ${network}`, limit }]);
  if (retryAfterSeconds === 0) return failure;
  return new ApiError('TooManyRequests', 'Too many invalid tokens have come from your network, use a valid one', {
    retryAfterSeconds,
  });
}
