/** The packages from npm and PyPI in each base image, all in one layer. */
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

/**
 * Files that no application here loads, as patterns of tar: tests, types, sources of binaries, translations, and parts of packages
 * for other uses. An engine unpacks the layers in each run of the tests, which takes CPU time for each file.
 */
export const excludedFiles = [
  '*/tests',
  '*.map',
  // Types, and sources and binaries for other systems.
  '*.d.ts',
  '*.d.mts',
  '*.d.cts',
  '*.pyi',
  '*.h',
  '*.pdb',
  '*.exe',
  '*.dll',
  // Most translations, but not into English, and time zones with a continent.
  '*.po',
  '*/locale/[a-df-z]*',
  'babel/locale-data/[a-df-qs-z]*',
  '*/zoneinfo/*/*',
  // Installers.
  'site/pip',
  'site/setuptools',
  'npm/docs',
  'npm/man',
  // Completion and snippets of editors.
  'jedi/third_party',
  'marimo/_lsp',
  'marimo/_snippets/data',
  // Pages that a server of Node.js renders, examples, parts for other notebooks, and plots.
  'gradio/templates/node',
  'gradio/media_assets',
  'jupyterlab/galata/@jupyterlab',
  'share/jupyter/nbextensions',
  'pydeck/nbextension/static',
  'panel/dist/bundled/*plot',
  // Parts of Arrow for other servers and stores.
  'pyarrow/include',
  'pyarrow/src',
  'pyarrow/*flight*',
  'pyarrow/*s3*',
  // Image processing and experimental releases of Next.js.
  'node_modules/@img',
  'next/dist/docs',
  'next/dist/compiled/*-experimental',
] as const;
