/** The states of backends in v1 and the earliest form of the service API. One state can stand for several statuses of v2. */
import { v1StateOfFailure, v1StateOfReason, v1StateOfStatus } from '../contract/generations.ts';
import type { V1State } from '../contract/generations.ts';
import type { StatusEntry } from './backend.ts';

/** A state of a backend, since its first entry in the history. */
export interface V1StateEntry {
  readonly state: V1State;
  readonly time: Date;
  /** The position in the history at which the state began. */
  readonly position: number;
}

/** The states of a history, each once. */
export function v1States(history: readonly StatusEntry[]): V1StateEntry[] {
  const states: V1StateEntry[] = [];
  for (const [position, entry] of history.entries()) {
    const state = v1StateOf(entry);
    if (states.at(-1)?.state !== state) states.push({ state, time: entry.time, position });
  }
  return states;
}

/** The current state of a backend, and its start. */
export function currentV1State(history: readonly StatusEntry[]): V1StateEntry {
  const last = v1States(history).at(-1);
  if (!last) throw new Error('A backend without a history');
  return last;
}

function v1StateOf({ status, terminationReason, lastStatus = 'scheduled', exitCode }: StatusEntry): V1State {
  if (status !== 'terminated') return v1StateOfStatus[status];
  if (terminationReason) return v1StateOfReason[terminationReason];
  return v1StateOfFailure[lastStatus] ?? (exitCode === 0 ? 'Exited' : 'Failed');
}
