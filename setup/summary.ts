/** The output of `npm start` when everything is ready: for people, and with --json for programs. */
import type { WholePlatform } from '../main/platform.ts';
import type { Terminal } from './terminal.ts';

/** What the summary shows of a platform. */
export type ShownPlatform = Pick<WholePlatform, 'urls' | 'account' | 'setupCode' | 'worker'>;

/** The sample application, and the key of its first session. */
export const sampleService = 'pad';
export const sampleKey = 'welcome';

export interface Result {
  readonly platform: ShownPlatform;
  /** Whether backends may have mounts. */
  readonly hasMounts: boolean;
  /** The connection URLs of the sample application, or the reason why there are none. */
  readonly sample: SampleUrls | { readonly problem: string };
}

export interface SampleUrls {
  /** For browsers. */
  readonly url: string;
  /** For every client: the path form of the same URL. */
  readonly plainUrl: string;
}

/** All addresses as one line of JSON. */
export function summaryForPrograms({ platform, sample }: Result): string {
  const { urls, account, worker } = platform;
  return JSON.stringify({
    api_url: urls.api,
    registry: urls.registry,
    proxy_url: urls.proxy,
    operations_url: urls.operations,
    ...(urls.sessions !== undefined && { sessions_url: urls.sessions }),
    ...('url' in sample && { sample_url: sample.plainUrl }),
    ...('url' in sample && sample.url !== sample.plainUrl && { sample_host_url: sample.url }),
    account: account.name,
    token_file: account.tokenFile,
    docker: worker.running,
    ...('problem' in sample && { problem: sample.problem }),
  });
}

/**
 * The addresses, and commands to try next. Without a terminal the text contains no secrets (the session URL contains a token), but
 * the commands that print them.
 */
export function summaryForPeople(result: Result, terminal: Terminal): string {
  const { platform, sample } = result;
  const { urls, account } = platform;
  const { bold, faint } = terminal;
  const sections = [
    'url' in sample ? openSample(sample, terminal) : `${bold('No session could be started.')} ${sample.problem}`,
    [
      `${faint('API')}        ${urls.api}`,
      `${faint('Registry')}   ${urls.registry}`,
      `${faint('Proxy')}      ${urls.proxy}`,
      `${faint('Operations')} ${urls.operations}/readyz`,
      `${faint('Account')}    ${account.name}`,
      `${faint('Token')}      in ${account.tokenFile}${shownToken(account, terminal)}`,
      ...shownSetup(platform, terminal),
    ].join('\n'),
    ...('url' in sample ? [connectCommands(result, terminal), pushCommands(platform, terminal)] : []),
    faint(`Ctrl-C stops Berth. Sessions keep running, and the next start adopts them.`),
  ];
  return `\n${sections.join('\n\n')}\n`;
}

function shownToken({ newToken }: ShownPlatform['account'], { isInteractive }: Terminal): string {
  return isInteractive && newToken !== undefined ? `, shown this once: ${newToken}` : '';
}

/** How to create the first administrator, as long as there is none. */
function shownSetup({ urls, setupCode }: ShownPlatform, { isInteractive, faint }: Terminal): string[] {
  if (!setupCode) return [];
  const code = isInteractive ? setupCode.code : `in ${setupCode.file}`;
  return [`${faint('Log-in')}     create the administrator at ${urls.api}/setup with the code ${code}`];
}

function openSample({ url, plainUrl }: SampleUrls, { isInteractive, bold, faint }: Terminal): string {
  if (!isInteractive)
    return 'The sample application is running. Its URL gives access to everyone who has it, so this log does not contain it.';
  return [
    `${bold('Open this in two browser tabs:')} ${url}`,
    faint('Both reach the same container. It saves and stops five minutes after the last tab is closed.'),
    ...(url === plainUrl ? [] : [`${faint('For curl and other programs:')} ${plainUrl}`]),
  ].join('\n');
}

function connectCommands(result: Result, { isInteractive, faint }: Terminal): string {
  return [
    ...(isInteractive ? [] : [faint('The URL of its session:'), connectCommand(result, sampleKey), '']),
    faint('A session with another key (the same key returns the same session):'),
    connectCommand(result, 'room-2'),
  ].join('\n');
}

function connectCommand({ platform: { urls, account }, hasMounts }: Result, key: string): string {
  const mount = hasMounts ? ',"spawn":{"executable":{"mount":true}}' : '';
  return [
    `  curl -X POST ${urls.api}/v2/service/${account.name}/${sampleService}/connect \\`,
    `    -H "Authorization: Bearer $(cat ${shellWord(account.tokenFile)})" -H 'Content-Type: application/json' \\`,
    `    -d '{"key":"${key}","user":"Ada"${mount}}'`,
  ].join('\n');
}

function pushCommands({ urls, account }: ShownPlatform, { faint }: Terminal): string {
  const image = `${urls.registry}/${account.name}/my-app`;
  return [
    faint('Your own application, any image that listens on port 8080:'),
    `  docker login -u ${account.name} --password-stdin ${urls.registry} < ${shellWord(account.tokenFile)}`,
    `  docker build -t ${image} . && docker push ${image}`,
  ].join('\n');
}

/** A path as one word of a shell command, quoted only if necessary. */
function shellWord(path: string): string {
  return /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
