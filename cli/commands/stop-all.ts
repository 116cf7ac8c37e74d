/** `berth service stop-all`. */
import { Command } from '@commander-js/extra-typings';
import { withExamples } from '../examples.ts';
import type { Session } from '../session.ts';

export function stopAllCommand(session: Session) {
  const command = new Command('stop-all')
    .alias('terminate-backends')
    .summary('stop all backends of a service')
    .description('Stops the backends of a service, for example after a push. The next connects spawn new backends.')
    .argument('<service>', 'SERVICE or ACCOUNT/SERVICE')
    .option('-n, --dry-run', 'only count the backends')
    .option('-f, --force', 'stop at once, without SIGTERM')
    .option('--before <time>', 'only backends that were spawned before this time, such as 2026-11-23T12:00:00Z')
    .action(async (name, { dryRun = false, force = false, before }) => {
      const client = await session.client();
      const service = await session.service(name);
      const wanted = { ...(before !== undefined && { before }), dry_run: dryRun, hard: force };
      const answer = await client.stopBackends(service, wanted, { signal: session.signal });
      const { backend_count: running, terminated_count: stopped } = answer;
      session.output.done(
        { service, backend_count: running, stopped_count: stopped, dry_run: dryRun },
        dryRun
          ? `${counted(running)} of ${service} would be stopped`
          : `${counted(stopped)} of ${service} ${stopped === 1 ? 'is' : 'are'} stopping`,
      );
    });
  return withExamples(command, 'service stop-all draw --dry-run', 'service stop-all draw');
}

function counted(count: number): string {
  return `${count} ${count === 1 ? 'backend' : 'backends'}`;
}
