/** The program of the action. The runner starts it twice: for the step, and after the job to delete the Docker log-in. */
import { Failure, messageOf } from './failure.ts';
import { logOut } from './push/docker-login.ts';
import { deploy } from './run.ts';
import { Workflow } from './workflow/workflow.ts';

/** A state that the step saves, so that the post step can be distinguished from it. */
const stateName = 'is-post';

const env = process.env;
const workflow = new Workflow({ env, write: (text) => void process.stdout.write(text) });

if (workflow.state(stateName) === '') await step();
else
  await logOut(workflow).catch((error: unknown) => workflow.warning(`Docker is still logged in: ${messageOf(error)}`));

async function step(): Promise<void> {
  const cancelled = new AbortController();
  const cancel = () => cancelled.abort(new Failure('The step was cancelled'));
  process.once('SIGINT', cancel).once('SIGTERM', cancel);
  try {
    workflow.saveState(stateName, 'true');
    await deploy({ env, workflow, signal: cancelled.signal });
  } catch (error) {
    workflow.error(messageOf(error));
    process.exitCode = 1;
  }
}
