import { expect, test } from 'vitest';
import { parseStrictJson } from './strict-json.ts';

test.each([
  '{}',
  '[]',
  ' [1, {"a": [], "b": {"a": null}}, {"a": 1}] ',
  '"a string"',
  '{"a":"a","b":["a","a",{"a":"a"}],"":"","\\"":"\\"","\\\\":"{\\"a\\":1,\\"a\\":2}"}',
  '{"a":{"a":{"a":[{"a":1},{"a":2}]}},"b":-1.5e3,"c":true}',
  '{"__proto__":1,"constructor":2}',
  `${'['.repeat(100)}${']'.repeat(100)}`,
  `[${'0,'.repeat(65_534)}0]`,
])('%.40s is parsed as JSON', (text) => {
  expect(parseStrictJson(text)).toEqual(JSON.parse(text));
});

test.each([
  ['{"a":1,"a":1}', /"a" is duplicated/],
  ['{"a":1,"b":{},"a":2}', /"a" is duplicated/],
  ['{"a":1,"\\u0061":2}', /"a" is duplicated/],
  ['{"":1,"":2}', /is duplicated/],
  ['[{"x":[{"b":1,"c":[{"b":3}],"b":2}]}]', /"b" is duplicated/],
  ['{"__proto__":1,"__proto__":2}', /is duplicated/],
  [`${'['.repeat(101)}${']'.repeat(101)}`, /too deep/],
  ['{"a":'.repeat(100_000), /too deep/],
  [`[${'0,'.repeat(65_536)}0]`, /Too many/],
  ['{"a', /Unterminated/],
  ['{"a":1}}', /JSON/],
  [']', /JSON/],
  ['{"a" "b"}', /JSON/],
  ['{a:1}', /JSON/],
  ['', /JSON/],
])('%.40s is rejected', (text, message) => {
  expect(() => parseStrictJson(text)).toThrow(message);
  expect(() => parseStrictJson(text)).toThrow(SyntaxError);
});
