/** `berth node`. */
import { Command } from '@commander-js/extra-typings';
import { withExamples } from '../examples.ts';
import { table } from '../output/table.ts';
import { ago } from '../output/time-text.ts';
import type { Session } from '../session.ts';

export function nodeCommand(session: Session) {
  return new Command('node')
    .summary('the machines on which backends run')
    .description(
      'Lists nodes, the machines on which backends run, and drains them. Needs the log-in of an administrator.',
    )
    .addCommand(listCommand(session))
    .addCommand(drainCommand(session))
    .addCommand(undrainCommand(session));
}

function listCommand(session: Session) {
  return new Command('list')
    .alias('ls')
    .summary('list nodes')
    .description('Lists the nodes of the platform.')
    .action(async () => {
      const client = await session.client();
      const nodes = await client.nodes.list({ signal: session.signal });
      const rows = nodes.map((node) => [
        node.name,
        node.cluster,
        node.alive ? (node.drained_at === null ? 'alive' : 'drained') : 'dead',
        String(node.running_backends),
        node.engine_version,
        ago(node.started_at),
      ]);
      session.output.data(nodes, table(['NODE', 'CLUSTER', 'STATE', 'BACKENDS', 'ENGINE', 'STARTED'], rows));
    });
}

function drainCommand(session: Session) {
  const command = new Command('drain')
    .summary('stop a node from accepting new backends')
    .description(
      'Stops a node from accepting new backends, for example before an update of its machine. Its backends keep running; "berth node list" shows how many are left.',
    )
    .argument('<node>', 'the name of a node')
    .action(async (node) => {
      const client = await session.client();
      await client.nodes.drain(node, { signal: session.signal });
      session.output.done({ node, drained: true }, `${node} accepts no new backends`);
    });
  return withExamples(command, 'node drain machine-2');
}

function undrainCommand(session: Session) {
  return new Command('undrain')
    .summary('let a node accept new backends again')
    .description('Lets a drained node accept new backends again.')
    .argument('<node>', 'the name of a node')
    .action(async (node) => {
      const client = await session.client();
      await client.nodes.undrain(node, { signal: session.signal });
      session.output.done({ node, drained: false }, `${node} accepts new backends`);
    });
}
