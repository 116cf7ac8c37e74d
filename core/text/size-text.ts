const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Formats a size: `512 bytes`, `1.5 GiB`. */
export function sizeText(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : Number(size.toFixed(1))} ${units[unit]}`;
}

/** Parses a size: `50GiB`, `1.5 TiB`, `20 GB`, `1048576`. `undefined` if it is invalid. */
export function parseSize(text: string): number | undefined {
  const [, digits = '', letter = '', binary = ''] = /^(\d+(?:\.\d+)?) ?([kmgtp]?)(i?)b?$/i.exec(text) ?? [];
  if (digits === '' || (letter === '' && binary !== '')) return undefined;
  const power = letter === '' ? 0 : 'kmgtp'.indexOf(letter.toLowerCase()) + 1;
  const bytes = Math.round(Number(digits) * (binary === '' ? 1000 : 1024) ** power);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}
