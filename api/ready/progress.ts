/** The texts of a readiness page about a backend. */
import type { PullProgress } from '../../contract/messages.ts';
import { sizeText } from '../../core/text/size-text.ts';
import { isEnding } from '../../model/backend.ts';
import type { Backend } from '../../model/backend.ts';
import { whyNotStarted } from '../../model/start-failure.ts';

export interface Progress {
  readonly title: string;
  readonly detail: string;
  /** Whether the page waits for something. */
  readonly busy: boolean;
  /** How much of the image is downloaded, from 0 to 1, while that is known. */
  readonly share?: number;
}

export const noSession: Progress = {
  title: 'No such session',
  detail: 'This link does not lead anywhere. Ask for a new one.',
  busy: false,
};

const steps: Readonly<Record<string, string>> = {
  scheduled: 'Waiting for capacity…',
  loading: 'Fetching the image…',
  starting: 'Starting the container…',
  waiting: 'Waiting for the application to answer…',
};

/** What a backend is doing, or why it ended. `pull` is what its node published last about the pull of its image. */
export function progressOf(backend: Backend, pull: PullProgress | undefined): Progress {
  if (!backend.live) return ended(backend);
  if (isEnding(backend)) return { title: 'The session is being stopped', detail: 'One moment…', busy: true };
  const title = 'Starting your session';
  if (backend.status === 'loading' && pull) return { title, busy: true, ...pulling(pull) };
  const { status, startProblem } = backend;
  if (status === 'waiting' && startProblem !== undefined) {
    return { title, detail: `${steps[status]} The container ${startProblem}.`, busy: true };
  }
  return { title, detail: steps[status] ?? 'One moment…', busy: true };
}

function pulling({
  layers,
  layersDone,
  downloadedBytes,
  totalBytes,
}: PullProgress): Pick<Progress, 'detail' | 'share'> {
  const bytes = totalBytes > 0 ? `, ${sizeText(downloadedBytes)} of ${sizeText(totalBytes)}` : '';
  return {
    detail: `Fetching the image… ${layersDone} of ${layers} layers${bytes}`,
    ...(totalBytes > 0 && { share: downloadedBytes / totalBytes }),
  };
}

function ended(backend: Backend): Progress {
  if (backend.readyAt)
    return { title: 'This session has ended', detail: 'Ask for a new link to start another.', busy: false };
  const last = backend.history.at(-1);
  return { title: 'The session could not start', detail: whyNotStarted(last), busy: false };
}
