/** The settings of `berth dev`: flags override `berth.config.json`, which overrides the defaults. */
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { z } from 'zod';
import { ConfigError } from '../../core/config/settings.ts';
import { devConfigFile } from './config-file.ts';

type DevConfigFile = z.infer<typeof devConfigFile>;

/** How an image is built. Paths are absolute. */
export interface BuildSettings {
  readonly dockerfile: string;
  readonly context: string;
  readonly target: string | undefined;
  /** `NAME=value`. */
  readonly buildArgs: readonly string[];
}

export interface DevSettings {
  /** The name of an image to run, or a build. */
  readonly source: { readonly image: string } | { readonly build: BuildSettings };
  readonly port: number;
  readonly host: string;
  readonly watch: boolean;
  /** `screen`: a screen on a terminal, lines elsewhere. */
  readonly output: DevOutput;
}

export type DevOutput = 'screen' | 'lines' | 'json';

/** The same options as in `cli/commands/server.ts`, which describes them. */
export const devOptions = {
  file: { type: 'string', short: 'f' },
  context: { type: 'string', short: 'c' },
  target: { type: 'string' },
  'build-arg': { type: 'string', multiple: true },
  image: { type: 'string', short: 'i' },
  port: { type: 'string', short: 'p' },
  host: { type: 'string' },
  watch: { type: 'boolean' },
  config: { type: 'string' },
  screen: { type: 'boolean', default: true },
  json: { type: 'boolean', default: false },
} as const;

type Flags = ReturnType<typeof parseFlags>;

/** The command line is not valid. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Reads flags and the configuration file. Throws `UsageError` and `ConfigError`. */
export async function readDevSettings(args: readonly string[], folder: string): Promise<DevSettings> {
  const flags = parseFlags(args);
  if (flags.image !== undefined && (flags.file ?? flags.context ?? flags.target ?? flags['build-arg']) !== undefined) {
    throw new UsageError('Use either --image or the options of a build');
  }
  const path = resolve(folder, flags.config ?? 'berth.config.json');
  const file = await readConfigFile(path, flags.config !== undefined);
  return {
    source: sourceOf(flags, { file, fileFolder: dirname(path), folder }),
    port: portOf(flags.port) ?? file.port ?? 8080,
    host: flags.host ?? file.host ?? '127.0.0.1',
    watch: flags.watch ?? file.watch ?? true,
    output: flags.json ? 'json' : flags.screen ? 'screen' : 'lines',
  };
}

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: devOptions, allowNegative: true }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** A flag for a build overrides the image in the file, and `--image` overrides the build in the file. */
function sourceOf(
  flags: Flags,
  { file, fileFolder, folder }: { file: DevConfigFile; fileFolder: string; folder: string },
): DevSettings['source'] {
  const isBuild = (flags.file ?? flags.context ?? flags.target ?? flags['build-arg']) !== undefined;
  const image = flags.image ?? (isBuild ? undefined : file.image);
  if (image !== undefined) return { image };
  const context =
    flags.context === undefined ? resolve(fileFolder, file.context ?? '.') : resolve(folder, flags.context);
  const ofFile = file.dockerfile === undefined ? join(context, 'Dockerfile') : resolve(fileFolder, file.dockerfile);
  const dockerfile = flags.file === undefined ? ofFile : resolve(folder, flags.file);
  const fileArgs = Object.entries(file.build_args ?? {}).map(([key, value]) => `${key}=${value}`);
  // Docker uses the last of several values.
  const buildArgs = [...fileArgs, ...(flags['build-arg'] ?? [])];
  return { build: { dockerfile, context, target: flags.target ?? file.target, buildArgs } };
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new UsageError('--port: Use a number from 0 to 65535');
  return Number(text);
}

async function readConfigFile(path: string, isNamed: boolean): Promise<DevConfigFile> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && !isNamed) return {};
    throw new ConfigError(`${path}: It cannot be read (${code ?? String(error)})`);
  }
  const parsed = devConfigFile.safeParse(parseJson(path, text));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path: at, message }) => `  ${at.join('.') || 'the file'}: ${message}`);
  throw new ConfigError(`${path} has problems:\n${problems.join('\n')}`);
}

function parseJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ConfigError(`${path}: It is not valid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
