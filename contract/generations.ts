/** The generations of the service API (section 9 of the API document), and the names that each of them uses. */
import { z } from 'zod';
import type { BackendStatus, TerminationReason } from './statuses.ts';

interface Generation {
  /** The prefix of the paths of its endpoints. */
  readonly prefix: '/v2' | '/v1' | '';
  /** Its names for what all generations have. A dot separates the names of nested fields. */
  readonly words: Readonly<Record<'connect' | 'key' | 'backendId' | 'status' | 'maxIdleSeconds' | 'env', string>>;
  /** The environment variables that the platform sets in its backends. */
  readonly reservedVariables: readonly string[];
  /** What happens to a request that sets one of them: the API rejects it, or the platform's value overrides the request's. */
  readonly onReservedVariable: 'refuse' | 'override';
}

const sessionVariables = [
  'PORT',
  'SESSION_BACKEND_ID',
  'SESSION_BACKEND_KEY',
  'SESSION_BACKEND_FENCING_TOKEN',
] as const;

const v1Words = {
  connect: 'spawn',
  key: 'lock',
  backendId: 'name',
  status: 'state',
  maxIdleSeconds: 'grace_period_seconds',
  env: 'env',
};

export const generations = {
  v2: {
    prefix: '/v2',
    words: {
      connect: 'connect',
      key: 'key',
      backendId: 'backend_id',
      status: 'status',
      maxIdleSeconds: 'spawn.max_idle_seconds',
      env: 'spawn.executable.env',
    },
    reservedVariables: sessionVariables,
    onReservedVariable: 'refuse',
  },
  v1: {
    prefix: '/v1',
    words: v1Words,
    reservedVariables: [...sessionVariables, 'PLATFORM_SERVICE'],
    onReservedVariable: 'refuse',
  },
  earliest: {
    prefix: '',
    words: v1Words,
    reservedVariables: [...sessionVariables, 'PLATFORM_NAME', 'PLATFORM_URL', 'PLATFORM_SERVICE'],
    onReservedVariable: 'override',
  },
} as const satisfies Readonly<Record<string, Generation>>;

export type GenerationName = keyof typeof generations;

/** The generations before v2. */
export type OlderGeneration = Exclude<GenerationName, 'v2'>;

/** The states of a backend in v1 and the earliest form (section 3.2 of the API document). */
export const v1State = z
  .enum([
    'Loading',
    'Starting',
    'Ready',
    'Swept',
    'Exited',
    'ErrorLoading',
    'ErrorStarting',
    'TimedOutBeforeReady',
    'Failed',
    'Terminated',
    'Lost',
  ])
  .meta({ id: 'V1State', description: 'State of a backend in v1 and the earliest form' });

export type V1State = z.infer<typeof v1State>;

/** The v1 state of a backend that has not ended. */
export const v1StateOfStatus: Readonly<Record<Exclude<BackendStatus, 'terminated'>, V1State>> = {
  scheduled: 'Loading',
  loading: 'Loading',
  starting: 'Starting',
  waiting: 'Starting',
  ready: 'Ready',
  terminating: 'Ready',
  'hard-terminating': 'Ready',
};

/** The v1 state of a backend that was stopped. */
export const v1StateOfReason: Readonly<Record<TerminationReason, V1State>> = {
  swept: 'Swept',
  external: 'Terminated',
  startuptimeout: 'TimedOutBeforeReady',
  keyexpired: 'Lost',
  lost: 'Lost',
};

/** The v1 state of a backend that failed on its own before its container ran, by its last status. */
export const v1StateOfFailure: Readonly<Partial<Record<BackendStatus, V1State>>> = {
  scheduled: 'ErrorLoading',
  loading: 'ErrorLoading',
  starting: 'ErrorStarting',
};
