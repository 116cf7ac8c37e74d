import { describe, expect, test } from 'vitest';
import {
  ConfigError,
  oneOf,
  optionalUrl,
  optionalWhole,
  port,
  readSettings,
  text,
  whole,
  wordList,
} from './settings.ts';

const about = { defaultText: '', help: '' };
const settings = {
  port: { variable: 'APP_PORT', schema: port(7100), ...about },
  name: { variable: 'APP_NAME', schema: text('home'), ...about },
  level: { variable: 'APP_LEVEL', schema: oneOf(['low', 'high'], 'low'), ...about },
  seconds: { variable: 'APP_SECONDS', schema: whole({ min: 1, max: 10, or: 5 }), ...about },
  bytes: { variable: 'APP_BYTES', schema: optionalWhole({ min: 0, max: 10 }), ...about },
  url: { variable: 'APP_URL', schema: optionalUrl(), ...about },
  words: { variable: 'APP_WORDS', schema: wordList(/^[a-z]+$/, 'Use words'), ...about },
};

const read = (environment: Record<string, string>) =>
  readSettings(settings, environment, { prefix: 'APP_', check: () => [] });

describe('settings', () => {
  test('have defaults, also where a variable is empty', () => {
    const defaults = {
      port: 7100,
      name: 'home',
      level: 'low',
      seconds: 5,
      bytes: undefined,
      url: undefined,
      words: [],
    };
    expect(read({})).toEqual(defaults);
    expect(read({ APP_PORT: '', APP_LEVEL: '', APP_URL: '', APP_WORDS: '', OTHER_PORT: 'x' })).toEqual(defaults);
  });

  test('are parsed', () => {
    const environment = {
      APP_PORT: '0',
      APP_BYTES: '0',
      APP_LEVEL: 'high',
      APP_URL: 'https://berth.example/',
      APP_WORDS: 'a, b',
    };
    expect(read(environment)).toMatchObject({
      port: 0,
      bytes: 0,
      level: 'high',
      url: 'https://berth.example',
      words: ['a', 'b'],
    });
  });

  test.each([
    ['APP_PORT', '70000'],
    ['APP_PORT', '80x'],
    ['APP_PORT', '-1'],
    ['APP_SECONDS', '0'],
    ['APP_SECONDS', '1.5'],
    ['APP_SECONDS', '1e1'],
    ['APP_BYTES', '11'],
    ['APP_BYTES', 'x'],
    ['APP_LEVEL', 'HIGH'],
    ['APP_URL', 'ftp://x'],
    ['APP_URL', 'berth.example'],
    ['APP_WORDS', 'a,,b'],
    ['APP_PROT', '1'],
  ])('reject %s=%s and name the variable', (variable, value) => {
    expect(() => read({ [variable]: value })).toThrow(ConfigError);
    expect(() => read({ [variable]: value })).toThrow(variable);
  });

  test('report all problems at once', () => {
    const problems = () => read({ APP_PORT: 'x', APP_LEVEL: 'x', APP_TYPO: 'x' });
    for (const variable of ['APP_PORT', 'APP_LEVEL', 'APP_TYPO']) expect(problems).toThrow(variable);
  });
});
