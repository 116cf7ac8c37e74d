import { Pace } from '../../core/async/pace.ts';

/** Requests wait no longer than this for a walk through documents, each step of which may be answered from memory. */
const stepMs = 10;

/** The pace of one walk. */
export function walkingPace(): Pace {
  return new Pace(stepMs);
}
