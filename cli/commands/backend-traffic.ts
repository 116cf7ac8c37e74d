/** `berth backend traffic`. */
import { Command } from '@commander-js/extra-typings';
import type { Traffic } from '../../client/index.ts';
import { sizeText } from '../output/progress.ts';
import { fields } from '../output/table.ts';
import type { Session } from '../session.ts';

export function trafficCommand(session: Session) {
  return new Command('traffic')
    .summary('print what a backend has received and sent')
    .description('Prints how many requests a backend has had so far, what it has received and sent, and what is open.')
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
