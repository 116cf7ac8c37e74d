import { expect, test } from 'vitest';
import { parseAbsoluteForm } from './absolute-form.ts';

test.each([
  ['http://a/b?c', 'a', '/b?c'],
  ['HTTP://a.example:7100//b', 'a.example:7100', '//b'],
  ['https://[::1]:1/b', '[::1]:1', '/b'],
  ['http://a', 'a', '/'],
  ['http://a?b', 'a', '/?b'],
  ['http://a/http://b/', 'a', '/http://b/'],
])('%s names the host %s and the path %s', (target, authority, path) => {
  expect(parseAbsoluteForm(target)).toEqual({ authority, target: path });
});

test.each(['/b', '/http://a/', '*', 'a:80', '', '//a/b', 'http:/a'])('%s names no host', (target) => {
  expect(parseAbsoluteForm(target)).toBeUndefined();
});

test.each([
  'http://',
  'http:///b',
  'http://u@a/',
  'http://u:p@a/',
  'http://a/#b',
  'ftp://a/b',
  'http://a\\b/',
  'http://a,b/',
])('%s is not valid', (target) => {
  expect(parseAbsoluteForm(target)).toBe('invalid');
});
