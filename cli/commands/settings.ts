/** `berth service settings`: the defaults of a service's backends. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import type { ServiceSettings, ServiceSettingsChange } from '../../client/index.ts';
import { several, variable } from '../arguments.ts';
import { CliError, usageError } from '../errors.ts';
import { withExamples } from '../examples.ts';
import { safeJson, safeText } from '../output/safe-text.ts';
import { fields } from '../output/table.ts';
import type { Session } from '../session.ts';

interface SettingsOptions {
  readonly set?: Readonly<Record<string, unknown>>;
  readonly unset?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly unsetEnv?: readonly string[];
  readonly secret?: readonly string[];
  readonly unsetSecret?: readonly string[];
  readonly public?: boolean;
}

export function settingsCommand(session: Session) {
  const command = new Command('settings')
    .summary('show or change the settings of a service')
    .description('Shows the settings of a service. Options change settings first; changes apply to new backends.')
    .argument('<service>', 'SERVICE or ACCOUNT/SERVICE')
    .option('-s, --set <name=value>', 'a setting with its name in the API, such as port=3000; may be repeated', setting)
    .option('--unset <name>', "restore the platform's default of a setting, may be repeated", several)
    .option(
      '-e, --env <name=value>',
      'a variable of backends; NAME alone: the value of this environment',
      variable(session),
    )
    .option('--unset-env <name>', 'delete a variable, may be repeated', several)
    .option(
      '--secret <name[=@file]>',
      'a secret variable, with its value from this environment, from a file, or with NAME=- from standard input',
      several,
    )
    .option('--unset-secret <name>', 'delete a secret variable, may be repeated', several)
    .option('--public', 'allow pulling images without a log-in')
    .option('--no-public', 'require a log-in to pull images')
    .action(async (name, options) => await settings(session, name, options));
  return withExamples(
    command,
    'service settings draw',
    'service settings draw --set port=3000 --set max_idle_seconds=60',
    `service settings draw --set 'resource_limits={"memory_limit_bytes":536870912}'`,
    'service settings draw --env LEVEL=3 --secret API_KEY=- < key-file',
  );
}

async function settings(session: Session, name: string, options: SettingsOptions): Promise<void> {
  const { signal, output } = session;
  const client = await session.client();
  const service = await session.service(name);
  const change = await changeOf(session, options);
  if (Object.keys(change).length > 0) await client.settings.change(service, change, { signal });
  if (options.public !== undefined) await client.settings.setPublic(service, options.public, { signal });
  const [current, isPublic] = await Promise.all([
    client.settings.get(service, { signal }),
    client.settings.isPublic(service, { signal }),
  ]);
  output.data({ ...current, public: isPublic }, settingsText(current, isPublic));
}

/** Builds the request. It may contain settings that this version of the command line does not know. */
async function changeOf(session: Session, options: SettingsOptions): Promise<ServiceSettingsChange> {
  const unset = Object.fromEntries((options.unset ?? []).map((name) => [name, null]));
  const deleted = (names: readonly string[] = []) => Object.fromEntries(names.map((name) => [name, null]));
  const env = { ...options.env, ...deleted(options.unsetEnv) };
  const secrets = { ...(await secretsOf(session, options.secret ?? [])), ...deleted(options.unsetSecret) };
  return {
    ...options.set,
    ...unset,
    ...(Object.keys(env).length > 0 && { env }),
    ...(Object.keys(secrets).length > 0 && { secrets }),
  };
}

/** Reads secrets. Refuses values in the command line, which every user of the machine can read. */
async function secretsOf({ io }: Session, given: readonly string[]): Promise<Record<string, string>> {
  const secrets: Record<string, string> = {};
  // The first one reads all of standard input, so the others would be empty.
  if (given.filter((each) => /^[^=]*=-$/.test(each)).length > 1) {
    throw usageError('--secret: Only one value can be read from standard input', 'Use NAME=@FILE for the others');
  }
  for (const each of given) {
    const at = each.indexOf('=');
    const name = at < 0 ? each : each.slice(0, at);
    const source = at < 0 ? undefined : each.slice(at + 1);
    if (source === '-') secrets[name] = withoutNewline(await text(io.stdin));
    else if (source?.startsWith('@')) secrets[name] = withoutNewline(await readSecret(io.cwd, source.slice(1)));
    else if (source === undefined && io.env[name] !== undefined) secrets[name] = io.env[name];
    else if (source === undefined) throw usageError(`--secret: The environment has no variable ${name}`);
    else {
      throw usageError(
        `--secret ${name}: A value in the command line could be read by every user of this machine`,
        `Use ${name}=- for standard input, ${name}=@FILE, or ${name} for the variable of this environment`,
      );
    }
  }
  return secrets;
}

async function readSecret(cwd: string, path: string): Promise<string> {
  return await readFile(resolve(cwd, path), 'utf8').catch((error: Error) => {
    throw new CliError('NoFile', `--secret: Cannot read ${path}: ${error.message}`);
  });
}

/** Removes the newline that editors and `echo` add to the end of a file. */
function withoutNewline(value: string): string {
  return value.replace(/\r?\n$/, '');
}

/** Parses `name=value`. A value that is not JSON is a text. */
function setting(given: string, before: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const [, name = '', value = ''] = /^([a-z][a-z0-9_]*)=(.*)$/s.exec(given) ?? [];
  if (name === '') throw new InvalidArgumentError('Use NAME=VALUE.');
  if (name === 'env' || name === 'secrets') throw new InvalidArgumentError('Use --env and --secret.');
  return { ...before, [name]: jsonOrText(value) };
}

function jsonOrText(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function settingsText({ env, secrets, ...others }: ServiceSettings, isPublic: boolean): string {
  const plain = Object.entries(others).map(([name, value]) => [name, textOf(value)] as const);
  const variables = Object.entries(env).map(([name, value]) => `env ${safeText(name)}=${safeText(value)}`);
  const names = secrets.map((name) => `secret ${safeText(name)}`);
  return [fields({ ...Object.fromEntries(plain), public: isPublic ? 'yes' : 'no' }), ...variables, ...names].join('\n');
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return 'default';
  return typeof value === 'string' ? value : safeJson(value);
}
