/** The inputs of the action. The runner applies the defaults of `action.yml`. */
import { isLoopback } from '../client/tools/registry-access.ts';
import { Failure } from './failure.ts';
import type { Environment } from './workflow/workflow.ts';

export interface Inputs {
  readonly host: string;
  /** Undefined: exchange the ID token of the job for a deploy token. */
  readonly token: string | undefined;
  readonly account: string;
  /** Without the account. */
  readonly service: string;
  readonly environment: string;
  readonly source: Source;
  readonly tags: readonly string[];
  readonly waitForReady: boolean;
  readonly readyTimeoutMs: number;
  readonly rollbackOnFailure: boolean;
}

/** Where the image comes from. */
export type Source =
  | { readonly kind: 'build'; readonly build: Build }
  | { readonly kind: 'image'; readonly image: string }
  | { readonly kind: 'archive'; readonly path: string };

export interface Build {
  readonly context: string;
  readonly file: string | undefined;
  readonly buildArgs: readonly string[];
  readonly platforms: readonly string[];
}

/** Reads only the token, so that it can be masked before anything else happens. */
export function tokenInput(env: Environment): string | undefined {
  return input(env, 'token');
}

/** Reads the inputs. Throws one failure with all problems. */
export function readInputs(env: Environment): Inputs {
  const problems: string[] = [];
  const check = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      problems.push(error.message);
      return undefined;
    }
  };
  const token = check(() => singleLine('token', tokenInput(env)));
  const host = check(() => hostUrl(input(env, 'host')));
  const names = check(() => serviceNames(env, token));
  const source = check(() => sourceOf(env));
  const tags = check(() => tagsOf(env));
  const waitForReady = check(() => flag(env, 'wait-for-ready')) ?? true;
  const readyTimeoutMs = check(() => seconds(env, 'ready-timeout-seconds') * 1000);
  const rollbackOnFailure = check(() => flag(env, 'rollback-on-failure')) ?? false;
  if (rollbackOnFailure && !waitForReady) problems.push('rollback-on-failure: It needs wait-for-ready');
  if (problems.length > 0 || !host || !names || !source || !tags || readyTimeoutMs === undefined) {
    throw new Failure(problems.join('\n'));
  }
  const environment = input(env, 'environment') ?? 'default';
  return { host, token, ...names, environment, source, tags, waitForReady, readyTimeoutMs, rollbackOnFailure };
}

/** Reads an input; undefined if it is empty. */
function input(env: Environment, name: string): string | undefined {
  // The runner names variables in upper case, with blanks as underscores and with hyphens.
  const value = env[`INPUT_${name.replaceAll(' ', '_').toUpperCase()}`]?.trim();
  return value === '' ? undefined : value;
}

function singleLine(name: string, value: string | undefined): string | undefined {
  if (value !== undefined && /[^!-~]/.test(value)) {
    throw new Failure(`${name}: It must not contain blanks, line breaks or characters other than ASCII`);
  }
  return value;
}

function hostUrl(text: string | undefined): string {
  if (text === undefined) throw new Failure('host: Set it to the address of the API, as in https://berth.example.com');
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new Failure('host: It is not an address such as https://berth.example.com');
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new Failure('host: Use https, because the token would cross the network unencrypted');
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

function serviceNames(env: Environment, token: string | undefined): { account: string; service: string } {
  const given = input(env, 'service');
  if (given === undefined) throw new Failure('service: Set it to the name of the service');
  const parts = given.split('/');
  if (parts.length > 2 || parts.includes('')) throw new Failure('service: Use SERVICE or ACCOUNT/SERVICE');
  const [service = '', inService] = parts.toReversed();
  const inToken = token?.includes('.') ? token.slice(0, token.indexOf('.')) : undefined;
  const account = input(env, 'account') ?? inService ?? inToken;
  if (account === undefined) throw new Failure('account: Set it to the account of the service');
  if (inService !== undefined && inService !== account) {
    throw new Failure(`account: It is "${account}", but the service belongs to "${inService}"`);
  }
  return { account, service };
}

function sourceOf(env: Environment): Source {
  const [image, archive] = [input(env, 'image'), input(env, 'archive')];
  const build = {
    context: input(env, 'context') ?? '.',
    file: input(env, 'file'),
    buildArgs: lines(input(env, 'build-args')),
    platforms: list(input(env, 'platforms')),
  };
  const given = image === undefined ? archive : image;
  if (given === undefined) {
    const wrong = build.buildArgs.find((each) => !/^[A-Za-z_]\w*(?:=|$)/.test(each));
    if (wrong !== undefined) throw new Failure(`build-args: "${wrong}" is not of the form NAME=value`);
    return { kind: 'build', build };
  }
  if (image !== undefined && archive !== undefined) throw new Failure('archive: Give either an image or an archive');
  const named = image === undefined ? 'archive' : 'image';
  const unused = (['file', 'build-args', 'platforms'] as const).find((name) => input(env, name) !== undefined);
  if (unused) throw new Failure(`${unused}: It is for builds, and the ${named} is built already`);
  return image === undefined ? { kind: 'archive', path: given } : { kind: 'image', image };
}

function tagsOf(env: Environment): string[] {
  const tags = list(input(env, 'tags'));
  const wrong = tags.find((tag) => !/^\w[\w.-]{0,127}$/.test(tag));
  if (wrong !== undefined)
    throw new Failure(`tags: "${wrong}" is not a tag; tags consist of letters, digits, _ . and -`);
  if (tags.length > 0) return [...new Set(tags)];
  const hash = env['GITHUB_SHA'] ?? '';
  return [hash === '' ? 'latest' : `sha-${hash.slice(0, 12)}`];
}

/** Parses a boolean of the core schema of YAML 1.2, as other actions do. */
function flag(env: Environment, name: string): boolean {
  const value = input(env, name);
  if (/^(?:true|True|TRUE)$/.test(value ?? '')) return true;
  if (value === undefined || /^(?:false|False|FALSE)$/.test(value)) return false;
  throw new Failure(`${name}: Use true or false`);
}

function seconds(env: Environment, name: string): number {
  const value = input(env, name) ?? '300';
  if (!/^\d{1,5}$/.test(value) || Number(value) === 0)
    throw new Failure(`${name}: Use a number of seconds, such as 300`);
  return Number(value);
}

function lines(text = ''): string[] {
  return text.split(/\r?\n/).flatMap((line) => line.trim() || []);
}

function list(text = ''): string[] {
  return text.split(/[\n,]/).flatMap((each) => each.trim() || []);
}
