/** What the worker room offers: the worker of one node, and the engine it runs backends on. */
export { openWorker } from './worker.ts';
export type { Worker } from './worker.ts';
export type { WorkerSettings } from './settings.ts';
export { openEngine } from './docker/engine.ts';
export type { DataFolderIdentity } from './docker/data-folder-identity.ts';
export { EngineError } from './docker/engine-error.ts';
export { NodeNameError } from './node/node-identity.ts';
