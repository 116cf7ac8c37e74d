import { expect, test } from 'vitest';
import { PathTable } from './path-table.ts';

const table = new PathTable<string>();
table.add('GET', '/service/{account}/{service}', 'service');
table.add('GET', '/service/{account}/all', 'shadowed');
table.add('GET', '/service/{account}', 'account');
table.add('POST', '/service/{account}', 'create');
table.add('GET', '/', 'root');

test.each([
  ['GET', '/service/acme/draw', 'service', { account: 'acme', service: 'draw' }],
  ['GET', '/service/acme', 'account', { account: 'acme' }],
  ['POST', '/service/acme', 'create', { account: 'acme' }],
  ['HEAD', '/service/acme', 'account', { account: 'acme' }],
  ['GET', '/service/acme/', 'account', { account: 'acme' }],
  ['GET', '/', 'root', {}],
  ['GET', '/service/a%2Fb/%C3%A9', 'service', { account: 'a/b', service: 'é' }],
  ['GET', '/service/__proto__/x', 'service', { account: '__proto__', service: 'x' }],
])('%s %s', (method, path, value, parameters) => {
  expect(table.find(method, path)).toEqual({ value, parameters });
});

test.each([
  ['GET', '/service'],
  ['GET', '/service//draw'],
  ['GET', '//'],
  ['GET', '/service/acme//'],
  ['GET', '/service/acme/draw/more'],
  ['GET', '/SERVICE/acme'],
  ['PUT', '/service/acme'],
  ['GET', 'service/acme'],
  ['GET', ''],
])('nothing answers %s %s', (method, path) => {
  expect(table.find(method, path)).toBeUndefined();
});

test('of two rows that match, the first one is used', () => {
  expect(table.find('GET', '/service/acme/all')?.value).toBe('service');
});

test('a parameter that is not correctly encoded is an error', () => {
  expect(() => table.find('GET', '/service/%zz')).toThrow(URIError);
  expect(() => table.find('GET', '/service/%ff')).toThrow(URIError);
});

test.each([
  ['/service/acme', ['GET', 'HEAD', 'POST']],
  ['/service/acme/', ['GET', 'HEAD', 'POST']],
  ['/service/acme/%zz', ['GET', 'HEAD']],
  ['/', ['GET', 'HEAD']],
  ['/service', []],
  ['/service//draw', []],
])('the methods of %s are %j', (path, methods) => {
  expect(table.methods(path)).toEqual(methods);
});
