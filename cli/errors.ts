/** Errors of the command line, and the exit code of each. */
import { constants } from 'node:os';
import { BerthError } from '../client/index.ts';

/** Exit codes. They are stable, because scripts depend on them. */
export const exitCodes = {
  success: 0,
  error: 1,
  usage: 2,
  authentication: 4,
  notFound: 5,
  /** The exit code of the program `timeout`. */
  timeout: 124,
  /** The code with which shells report a program that SIGINT has ended. */
  interrupted: 130,
  /** The same for SIGTERM. */
  terminated: 143,
} as const;

/** An error whose cause the user can correct. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly code: string;
  readonly exitCode: number;
  /** How to correct the cause. */
  readonly hint: string | undefined;

  constructor(code: string, message: string, options: { exitCode?: number; hint?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.exitCode = options.exitCode ?? exitCodes.error;
    this.hint = options.hint;
  }
}

/** The error for an invalid command line. */
export function usageError(message: string, hint?: string): CliError {
  return new CliError('Usage', message, { exitCode: exitCodes.usage, ...(hint !== undefined && { hint }) });
}

/** The error for a name that does not exist. */
export function notFound(code: string, message: string, hint?: string): CliError {
  return new CliError(code, message, { exitCode: exitCodes.notFound, ...(hint !== undefined && { hint }) });
}

/** The reason of the abort signal when a signal of the operating system has ended the command. */
export function interruption(signal: NodeJS.Signals): CliError {
  return new CliError('Interrupted', `Stopped by ${signal}`, { exitCode: 128 + constants.signals[signal] });
}

/** An error as it is printed. */
export interface ErrorReport {
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  /** The HTTP status, if the API has reported the error. */
  readonly status?: number | undefined;
  /** The ID of the request in the server's log. */
  readonly id?: string | undefined;
  readonly exitCode: number;
}

/** Describes an error without any secret. */
export function reportOf(error: unknown): ErrorReport {
  const report = rawReport(error);
  return { ...report, message: redact(report.message) };
}

function rawReport(error: unknown): ErrorReport {
  if (error instanceof CliError) {
    const { code, message, hint, exitCode } = error;
    return { code, message, hint, exitCode };
  }
  if (error instanceof BerthError) {
    const { code, message, status, id, retryAfterMs } = error;
    const hint = hints[code] ?? (retryAfterMs === undefined ? undefined : `Try again in ${seconds(retryAfterMs)} s`);
    return { code, message, hint, status, id: id || undefined, exitCode: exitCodeOf(error) };
  }
  // The client throws a TypeError for an invalid argument, and its message begins with the argument's name.
  if (error instanceof TypeError && /^[\w.]+: /.test(error.message))
    return { code: 'Usage', message: error.message, exitCode: exitCodes.usage };
  const message = error instanceof Error ? error.message : String(error);
  return { code: 'Failed', message, exitCode: exitCodes.error };
}

const hints: Readonly<Record<string, string>> = {
  Unauthorized: 'Log in with "berth login", or set BERTH_TOKEN to a valid access token',
  Unreachable: 'Check the address with "berth doctor"; --host or BERTH_HOST sets another one',
  UnexpectedResponse: 'Check the address with "berth doctor"; --host or BERTH_HOST sets another one',
  NoImage: 'Push an image with "berth push"',
  ServiceNotFound: '"berth service list" shows the services of the account',
  EnvironmentNotFound: '"berth environment list" shows the environments of a service',
  BackendEnded: '"berth logs" and "berth backend info" show why',
};

function exitCodeOf({ code, status }: BerthError): number {
  if (status === 401 || status === 403) return exitCodes.authentication;
  if (status === 404) return exitCodes.notFound;
  if (status === 400) return exitCodes.usage;
  return code === 'TimedOut' ? exitCodes.timeout : exitCodes.error;
}

/** Removes access tokens from the message of an error. */
export function redact(text: string): string {
  return text.replaceAll(/berth_[a-z]{3}_[A-Za-z0-9]+/g, '[redacted]');
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
