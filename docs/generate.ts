/** Writes the documents that are generated from the code. With `--check`, only lists the stale ones. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { actionText } from '../action/build.ts';
import { z } from 'zod';
import { serviceErrors } from '../contract/errors.ts';
import { proxyErrors, proxyErrorHeader } from '../contract/proxy-errors.ts';
import type { Setting } from '../core/config/settings.ts';
import { sizeText } from '../core/text/size-text.ts';
import { settings } from '../main/config/config.ts';
import { devConfigFile } from '../main/dev/config-file.ts';
import { registryErrors } from '../registry/error-catalogue.ts';
import { apiText } from './api-table.ts';
import { cliText } from './cli-commands.ts';
import { clientContractText } from './client-contract.ts';
import { openApiText } from './openapi.ts';

const root = join(import.meta.dirname, '..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

const documents = {
  'action/dist/deploy.mjs': await actionText(),
  'client/contract.ts': clientContractText(version),
  'docs/api.md': apiText(),
  'docs/berth.config.schema.json': `${JSON.stringify(z.toJSONSchema(devConfigFile), undefined, 2)}\n`,
  'docs/cli.md': cliText(),
  'docs/configuration.md': configurationText(),
  'docs/errors.md': errorsText(),
  'docs/openapi.json': openApiText(version),
};

const isCheck = process.argv.includes('--check');
const stale = Object.entries(documents).filter(([path, text]) => currentText(path) !== text);
if (!isCheck) for (const [path, text] of stale) writeFileSync(join(root, path), text);
for (const [path] of stale) process.stdout.write(`${path}: ${isCheck ? 'stale, run "npm run generate"' : 'written'}\n`);
process.exitCode = isCheck && stale.length > 0 ? 1 : 0;

function currentText(path: string): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch {
    return undefined;
  }
}

function configurationText(): string {
  const all: readonly Setting<unknown>[] = Object.values(settings);
  const rows = all.map((setting) => `| \`${setting.variable}\` | ${setting.help} | ${defaultOf(setting)} |`);
  return `# Configuration

Environment variables configure Berth. At start, Berth reads and checks all of them at once. It refuses a variable that begins with
\`BERTH_\` and is not in this list, because the name is most likely misspelt. An empty variable counts as not set.

| variable | meaning | default |
|---|---|---|
${rows.join('\n')}
`;
}

/** The default of a setting, from its schema. */
function defaultOf({ variable, schema, defaultText }: Setting<unknown>): string {
  if (defaultText !== undefined) return defaultText;
  const value = schema.parse(undefined) ?? '';
  const written = typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
  if (written === '') return 'none';
  return `\`${written}\`${variable.includes('_BYTES') ? ` (${sizeText(Number(value))})` : ''}`;
}

function errorsText(): string {
  const service = Object.entries(serviceErrors).map(
    ([code, { status, when }]) => `| \`${code}\` | ${status} | ${when} |`,
  );
  const proxy = Object.entries(proxyErrors).map(
    ([code, { status, message }]) => `| \`${code}\` | ${status} | ${message} |`,
  );
  const registry = Object.values(registryErrors).map(
    ({ code, status, message, when }) => `| \`${code}\` | ${status} | ${message} | ${when} |`,
  );
  return `# Errors

## The service API

The response to every refused request is \`{"error":{"code","message","status","id"}}\`. The code is stable, the message says what
to do, and the ID is in the server's log.

| code | status | when |
|---|---|---|
${service.join('\n')}

## The proxy

Errors of the proxy itself have the header \`${proxyErrorHeader}\` with the code, to distinguish them from the application's errors.
The header never comes from an application: the proxy removes it from the application's responses.

| code | status | message |
|---|---|---|
${proxy.join('\n')}

## The registry

The response to every refused request is \`{"errors":[{"code","message"}]}\`, as the OCI distribution specification defines. The
message may end with details of the case. If the status is 500 or higher, the ID in \`detail.id\` is in the server's log.

| code | status | message | when |
|---|---|---|---|
${registry.join('\n').replaceAll('<', '&lt;')}
`;
}
