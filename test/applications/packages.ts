/** What the images of the applications contain from npm and PyPI: all of one base in one layer, which they share. */
import type { ApplicationPackages } from '../kit/packages/application-packages.ts';

export const packagesOf = {
  node: {
    from: 'npm',
    names: [
      '@hocuspocus/server@4.7.0',
      '@novnc/novnc@1.7.0',
      'express@5.3.0',
      'node-red@5.0.7',
      'redis-commander@0.9.0',
      'socket.io@4.8.4',
      'y-websocket@1.5.4',
      'yjs@13.6.33',
    ],
  },
  frontend: {
    from: 'npm',
    names: ['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1', 'vite@8.3.8'],
  },
  python: {
    from: 'pypi',
    names: [
      'datasette==0.65.5',
      'django==5.2.19',
      'gradio==6.31.0',
      'jupyterlab==4.6.6',
      'marimo==0.25.2',
      'panel==1.9.4',
      'streamlit==1.67.0',
      'websockify==0.13.0',
    ],
  },
} as const satisfies Readonly<Record<string, ApplicationPackages>>;
