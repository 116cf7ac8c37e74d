/** Writes the documents that are made from the code; with `--check` it only says which of them are stale. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serviceErrors } from '../contract/errors.ts';
import { proxyErrors, proxyErrorHeader } from '../contract/proxy-errors.ts';
import { settings } from '../main/config/config.ts';
import { registryErrors } from '../registry/errors.ts';
import { openApiText } from './openapi.ts';

const root = join(import.meta.dirname, '..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

const documents = {
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
  const rows = Object.values(settings).map(
    ({ variable, defaultText, help }) => `| \`${variable}\` | ${help} | ${defaultText} |`,
  );
  return `# Configuration

Berth is configured by environment variables. All of them are read at start and checked at once; a variable that begins with
\`BERTH_\` and is not in this list is refused, since it is most likely misspelt. An empty variable counts as not set.

| variable | meaning | default |
|---|---|---|
${rows.join('\n')}
`;
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

Every refused request is answered with \`{"error":{"code","message","status","id"}}\`. The code is stable; the message says what
to do; the ID is in the server's log.

| code | status | when |
|---|---|---|
${service.join('\n')}

## The proxy

Errors that the proxy makes itself carry the header \`${proxyErrorHeader}\` with the code, so that no one takes them for the
application's. The header never comes from an application: the proxy removes it there.

| code | status | message |
|---|---|---|
${proxy.join('\n')}

## The registry

Every refused request is answered with \`{"errors":[{"code","message"}]}\`, as the OCI distribution specification has it. More
about the case at hand may follow the message. Where the status is 500 or more, \`detail.id\` is in the server's log.

| code | status | message | when |
|---|---|---|---|
${registry.join('\n').replaceAll('<', '&lt;')}
`;
}
