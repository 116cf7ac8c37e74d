import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

const text = (name: string) => readFileSync(join(import.meta.dirname, name), 'utf8');

type Entries = Readonly<Record<string, { description: string; required?: boolean; default?: string }>>;

const action = parse(text('action.yml')) as { inputs: Entries; outputs: Entries };

const rows = text('README.md')
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  );

test('the README lists the inputs and outputs of action.yml', () => {
  const inputs = Object.entries(action.inputs).map(([name, { description, required, default: value = '' }]) => [
    name,
    description,
    required === true ? 'required' : value,
  ]);
  const outputs = Object.entries(action.outputs).map(([name, { description }]) => [name, description]);
  expect(rows).toEqual([...inputs, ...outputs]);
});
