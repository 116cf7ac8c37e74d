/** Times for people. */

const units: readonly (readonly [string, number])[] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

/** How long ago a time was, such as `3 min ago`; `-` without a time. */
export function ago(time: string | null | undefined, now = Date.now()): string {
  if (time === null || time === undefined) return '-';
  const seconds = Math.max(0, Math.floor((now - Date.parse(time)) / 1000));
  if (Number.isNaN(seconds)) return time;
  const [unit, size] = units.find(([, each]) => seconds >= each) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

/** Parses a duration such as `90`, `90s`, `15m`, `12h` or `30d` into seconds; `undefined` if it is invalid. */
export function parseDuration(text: string): number | undefined {
  const [, digits = '', unit = 's'] = /^(\d{1,10})(s|m|min|h|d)?$/.exec(text) ?? [];
  if (digits === '') return undefined;
  return Number(digits) * { s: 1, m: 60, min: 60, h: 3_600, d: 86_400 }[unit as 's' | 'm' | 'min' | 'h' | 'd'];
}
