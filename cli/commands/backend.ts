/** `berth backend`: shows and stops backends. */
import { Command } from '@commander-js/extra-typings';
import type { Backend, BackendListItem, BackendStatus, RunningBackend, Traffic } from '../../client/index.ts';
import { duration, positive } from '../arguments.ts';
import { collect } from '../collect.ts';
import { reportOf, usageError } from '../errors.ts';
import { withExamples } from '../examples.ts';
import { sizeText } from '../output/progress.ts';
import { fields, table } from '../output/table.ts';
import { ago } from '../output/time-text.ts';
import type { Session } from '../session.ts';
import { logsCommand, metricsCommand } from './backend-streams.ts';

export function backendCommand(session: Session) {
  return new Command('backend')
    .summary('show and stop backends')
    .description('Shows and stops backends.')
    .addCommand(listCommand(session))
    .addCommand(infoCommand(session))
    .addCommand(logsCommand(session))
    .addCommand(metricsCommand(session))
    .addCommand(trafficCommand(session))
    .addCommand(stopCommand(session, 'stop').alias('terminate'));
}

/** Enough to find a recent backend, and quickly printed. */
const defaultLimit = 50;

function listCommand(session: Session) {
  const command = new Command('list')
    .alias('ls')
    .summary('list backends, newest first')
    .description(
      'Lists the running backends of the account, or all backends of a service, including ended ones; newest first.',
    )
    .argument('[service]', 'SERVICE or ACCOUNT/SERVICE')
    .option('--since <duration>', 'with a service: only backends that were spawned in this time, such as 12h', duration)
    .option('--limit <count>', `with a service: how many (default: ${defaultLimit})`, positive)
    .action(async (service, { since, limit }) => {
      if (service === undefined && (since ?? limit) !== undefined) {
        throw usageError('--since and --limit need a service');
      }
      const items =
        service === undefined
          ? await running(session)
          : await ofService(session, service, { since, limit: limit ?? defaultLimit });
      session.output.data(
        items,
        table(
          ['ID', 'SERVICE', 'ENVIRONMENT', 'STATUS', 'CREATED', 'KEY'],
          items.map((each) => [
            each.id,
            `${each.account_name}/${each.service_name}`,
            each.environment_name,
            statusText(each.status),
            ago(each.created_at),
            each.key ?? '-',
          ]),
        ),
      );
    });
  return withExamples(command, 'backend list', 'backend list draw --since 12h --json');
}

async function running(session: Session): Promise<RunningBackend[]> {
  const client = await session.client();
  return await collect(client.runningBackends(await session.account(), { signal: session.signal }));
}

async function ofService(
  session: Session,
  name: string,
  { since, limit }: { since: number | undefined; limit: number },
): Promise<BackendListItem[]> {
  const client = await session.client();
  const times = since === undefined ? {} : { start: new Date(Date.now() - since * 1000) };
  const pageSize = Math.min(limit, 1000);
  return await collect(
    client.backends(await session.service(name), { ...times, pageSize, signal: session.signal }),
    limit,
  );
}

function infoCommand(session: Session) {
  return new Command('info')
    .summary('show a backend and its status history')
    .description('Shows a backend and its status history.')
    .argument('<backend>', 'the ID of a backend')
    .action(async (id) => {
      const client = await session.client();
      const backend = await client.backend(id, { signal: session.signal });
      session.output.data(backend, backendText(backend));
    });
}

function backendText(backend: Backend): string {
  const about = fields({
    backend: backend.id,
    service: `${backend.account_name}/${backend.service_name}`,
    environment: backend.environment_name,
    cluster: backend.cluster_name,
    key: backend.key,
    image: backend.image_digest,
    'highest memory': `${backend.max_mem_bytes} bytes`,
    created: backend.created_at,
    problem: backend.statuses.at(-1)?.problem,
  });
  const history = table(
    ['STATUS', 'TIME', 'DETAILS'],
    backend.statuses.map(({ status, time, termination_kind, termination_reason, exit_code }) => [
      status,
      time,
      [
        termination_kind,
        termination_reason,
        exit_code === undefined || exit_code === null ? '' : `exit code ${exit_code}`,
      ]
        .filter(Boolean)
        .join(', '),
    ]),
  );
  return `${about}\n\n${history}`;
}

function statusText({ status, termination_reason: reason, exit_error: failed }: BackendStatus): string {
  const why = [reason, failed ? 'error' : ''].filter(Boolean).join(', ');
  return why === '' ? status : `${status} (${why})`;
}

function trafficCommand(session: Session) {
  return new Command('traffic')
    .summary('print the traffic of a backend')
    .description('Prints the number of requests, bytes and open connections of a backend.')
    .argument('<backend>', 'the ID of a backend')
    .action(async (backend) => {
      const client = await session.client();
      const counted = await client.traffic(backend, { signal: session.signal });
      session.output.data(counted, trafficText(counted));
    });
}

function trafficText(counted: Traffic): string {
  return fields({
    backend: counted.backend_id,
    requests: String(counted.requests),
    received: sizeText(counted.bytes_in),
    sent: sizeText(counted.bytes_out),
    'open connections': String(counted.open_connections),
    counted: counted.counted_at ?? 'never',
  });
}

/** `backend stop`; existing tools call it `terminate`. */
export function stopCommand(session: Session, name: string) {
  const command = new Command(name)
    .summary('stop backends')
    .description('Stops backends with SIGTERM, so that they can save data, or by force.')
    .argument('<backends...>', 'the IDs of backends')
    .option('-f, --force', 'stop at once, without SIGTERM')
    .option('-w, --wait', 'wait until they have ended')
    .action(async (backends, { force, wait }) => {
      const client = await session.client();
      const { signal, output } = session;
      const stop = async (backend: string) => {
        await client.stop(backend, { ...(force && { hard: true }), signal });
        const { status } = wait
          ? await client.waitUntilTerminated(backend, { signal })
          : { status: force ? 'hard-terminating' : 'terminating' };
        output.done({ backend, status }, `${backend} is ${status}`);
      };
      // All of them, even if one has already ended; with --wait at the same time.
      const results = await Promise.allSettled(backends.map(stop));
      signal.throwIfAborted();
      const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
      for (const failure of failures.slice(1)) output.warning(reportOf(failure).message);
      if (failures.length > 0) throw failures[0];
    });
  return withExamples(command, `${name === 'stop' ? 'backend stop' : name} tb7rq01a2b3c4d5e6f --wait`);
}
