/** `berth logs` and `berth backend metrics`. */
import { Command } from '@commander-js/extra-typings';
import type { Metrics } from '../../client/index.ts';
import { withExamples } from '../examples.ts';
import { sizeText } from '../output/progress.ts';
import { safeLogLine } from '../output/safe-text.ts';
import type { Session } from '../session.ts';

export function logsCommand(session: Session) {
  const command = new Command('logs')
    .summary('print the log of a backend')
    .description('Prints the stored log of a running or ended backend. With --follow, prints new lines, too.')
    .argument('<backend>', 'the ID of a backend')
    .option('-f, --follow', 'continue until the backend has ended')
    .option('--after <id>', 'only lines after the line with this ID, which --json prints')
    .action(async (backend, { follow, after }) => {
      const { output, signal } = session;
      const client = await session.client();
      const lines = client.logs(backend, { signal, after, follow: follow ?? false });
      for await (const { id, line } of lines) {
        output.data({ id, line }, safeLogLine(line, output.colors.isColorSupported) || ' ');
      }
    });
  return withExamples(command, 'logs tb7rq01a2b3c4d5e6f --follow', 'logs tb7rq01a2b3c4d5e6f --json');
}

export function metricsCommand(session: Session) {
  return new Command('metrics')
    .summary('print the resource usage of a backend')
    .description('Prints the resource usage of a backend every second until it has ended.')
    .argument('<backend>', 'the ID of a backend')
    .option('--once', 'print one record')
    .action(async (backend, { once }) => {
      const client = await session.client();
      for await (const record of client.metrics(backend, { signal: session.signal })) {
        session.output.data(record, metricsText(record));
        if (once) return;
      }
    });
}

/** CPU is shown as a percentage of the node, because the record does not contain the number of cores. */
function metricsText({ cpu_used, sys_cpu, mem_used, mem_limit }: Metrics): string {
  const cpu = sys_cpu === 0 ? 0 : (cpu_used / sys_cpu) * 100;
  return `CPU ${cpu.toFixed(1).padStart(5)} % of the node   memory ${sizeText(mem_used)} of ${sizeText(mem_limit)}`;
}
