const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** A size as people read it: `512 bytes`, `1.5 GiB`. */
export function sizeText(bytes: number): string {
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : Number(size.toFixed(1))} ${units[unit]}`;
}
