import { expect, test } from 'vitest';
import { defaultVariables } from './default-variables.ts';

const image = {
  command: [],
  ports: [],
  variables: [],
  user: '',
  volumes: [],
  stopSignal: '',
  architecture: '',
  sizeBytes: 0,
};
const urlAt = (domain: string) => ({ SESSION_BACKEND_URL: `https://label.${domain}/` });
const vite = '__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS';

test('programs listen on all addresses', () => {
  expect(defaultVariables(image, {})).toEqual({ HOST: '0.0.0.0' });
});

test('the development server of Vite answers at the hosts of sessions', () => {
  expect(defaultVariables(image, urlAt('sessions.example'))).toMatchObject({ [vite]: '.sessions.example' });
  expect(defaultVariables(image, urlAt('localhost:7102'))).not.toHaveProperty(vite);
  expect(defaultVariables(image, { SESSION_BACKEND_URL: 'of the request' })).not.toHaveProperty(vite);
});

test('variables of the image are not overridden', () => {
  expect(defaultVariables({ ...image, variables: ['HOST', vite] }, urlAt('sessions.example'))).toEqual({});
});
