/** `berth spawn`: a connect with the words of v1, for compatibility with existing tools. Help does not show it. */
import { Command } from '@commander-js/extra-typings';
import { nonNegative, variable } from '../arguments.ts';
import type { Session } from '../session.ts';
import { connect } from './connect.ts';

export function spawnCommand(session: Session) {
  return new Command('spawn')
    .description('The same as "berth connect", with the words of v1.')
    .argument('<service>', 'SERVICE, SERVICE/ENVIRONMENT or ACCOUNT/SERVICE/ENVIRONMENT')
    .option('-e, --env <name=value>', 'a variable of a new backend', variable(session))
    .option('-g, --grace <seconds>', 'how long a new backend runs without connections', nonNegative)
    .option('-l, --lock <key>', 'the key')
    .option('-t, --tag <tag>', 'the image of a new backend')
    .action(async (service, { env, grace, lock, tag }) => {
      await connect(session, service, {
        spawn: true,
        ...(env && { env }),
        ...(grace !== undefined && { maxIdleSeconds: grace }),
        ...(lock !== undefined && { key: lock }),
        ...(tag !== undefined && { tag }),
      });
    });
}
