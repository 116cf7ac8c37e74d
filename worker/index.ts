/** The exports of the worker: the worker of one node, and the Docker Engine on which it runs backends. */
export { openWorker } from './worker.ts';
export type { Worker } from './worker.ts';
export type { WorkerSettings } from './settings.ts';
export { openEngine } from './docker/engine.ts';
export { EngineError } from './docker/engine-error.ts';
export type { DataFolderIdentity } from './docker/labels.ts';
export { NodeNameError } from './node/node-identity.ts';
