/** The stop signal of an image as a number: programs that no engine starts cannot look up its name. */
import { constants } from 'node:os';

/** The real-time signals of Linux. */
const firstRealTime = 34;
const lastRealTime = 64;

/** The number of a `STOPSIGNAL`, by the rules of Docker: `SIGQUIT`, `quit`, `3`, `SIGRTMIN+3`. SIGTERM for empty and unknown texts. */
export function signalNumber(text: string): number {
  const name = text.toUpperCase().replace(/^SIG/, '');
  const number = /^\d+$/.test(name) ? Number(name) : (realTime(name) ?? named(name));
  return number !== undefined && number >= 1 && number <= lastRealTime ? number : constants.signals.SIGTERM;
}

function named(name: string): number | undefined {
  return (constants.signals as Readonly<Record<string, number>>)[`SIG${name}`];
}

function realTime(name: string): number | undefined {
  const [, base, sign, offset = '0'] = /^RT(MIN|MAX)(?:([+-])(\d+))?$/.exec(name) ?? [];
  if (base === undefined) return undefined;
  const number = (base === 'MIN' ? firstRealTime : lastRealTime) + (sign === '-' ? -Number(offset) : Number(offset));
  return number >= firstRealTime ? number : undefined;
}
