/** What the images of the applications contain from npm and PyPI. */
import type { ApplicationPackages } from '../kit/packages/application-packages.ts';

export const packagesOf = {
  'socket.io': { from: 'npm', names: ['express@5.3.0', 'socket.io@4.8.4'] },
  'y-websocket': { from: 'npm', names: ['y-websocket@1.5.4', 'yjs@13.6.33'] },
  hocuspocus: { from: 'npm', names: ['@hocuspocus/server@4.7.0', 'yjs@13.6.33'] },
  'node-red': { from: 'npm', names: ['node-red@5.0.7'] },
  streamlit: { from: 'pypi', names: ['streamlit==1.67.0'] },
  jupyter: { from: 'pypi', names: ['jupyterlab==4.6.6'] },
} as const satisfies Readonly<Record<string, ApplicationPackages>>;
