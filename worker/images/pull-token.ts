import type { WorkerContext } from '../context.ts';

/** What the registry needs to begin; a pull that is under way keeps its token, so this much longer than its time limit. */
const tokenSparesSeconds = 60;

/** A grant to pull from one repository, for as long as that may take. */
export async function newPullToken({ grants, settings, clock }: WorkerContext, name: string): Promise<string> {
  return await grants.issue(
    { subject: `node:${settings.node}`, access: [{ type: 'repository', name, actions: ['pull'] }] },
    settings.pullTimeoutSeconds + tokenSparesSeconds,
    clock.now(),
  );
}
