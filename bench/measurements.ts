/** Repeated measurements of two sides, and the table that reports them. */

/** The median. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which `share` of the values lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  if (value === undefined) throw new Error('No values');
  return value;
}

/** The values of both sides, one per round. */
export interface Pairs {
  readonly ours: number[];
  readonly peer: number[];
}

/** The order of the sides in a round. It alternates, because the first measurement affects the machine for the second. */
export function sidesIn(round: number): readonly (keyof Pairs)[] {
  return round % 2 === 0 ? ['ours', 'peer'] : ['peer', 'ours'];
}

/** Measures both sides in turn, and drops the warm-up rounds. A measurement returns a rate or a time. */
export async function inTurn(
  { warmUps, rounds }: { readonly warmUps: number; readonly rounds: number },
  our: () => Promise<number>,
  their: () => Promise<number>,
): Promise<Pairs> {
  const pairs: Pairs = { ours: [], peer: [] };
  for (let round = 0; round < warmUps + rounds; round += 1) {
    for (const side of sidesIn(round)) {
      const value = await (side === 'ours' ? our() : their());
      if (round >= warmUps) pairs[side].push(value);
    }
  }
  return pairs;
}

/** A row of the report: our value, the peer's, their ratio, and the goal. */
export interface Row {
  readonly what: string;
  readonly ours: string;
  readonly peer: string;
  readonly ratio: string;
  readonly aim: string;
}

/**
 * A row for values that were measured in turn. Its ratio is the median of the rounds' ratios: if other programs use the machine,
 * some rounds are slower for both sides.
 *
 * @param show - formats the values of a side
 */
export function pairsRow(
  what: string,
  { ours, peer }: Pairs,
  { show, aim }: { readonly show: (values: readonly number[]) => string; readonly aim: string },
): Row {
  const ratio = median(ours.map((our, round) => our / (peer[round] ?? Number.NaN)));
  return { what, ours: show(ours), peer: show(peer), ratio: `${ratio.toFixed(2)} ×`, aim };
}

/** A row of two sizes in bytes. */
export function sizeRow(
  what: string,
  { ours, peer }: { readonly ours: number; readonly peer: number },
  aim: string,
): Row {
  return {
    what,
    ours: `${(ours / 1e6).toFixed(0)} MB`,
    peer: `${(peer / 1e6).toFixed(0)} MB`,
    ratio: `${(ours / peer).toFixed(2)} ×`,
    aim,
  };
}

/** The report as an aligned table. */
export function table(rows: readonly Row[]): string {
  const columns = ['what', 'ours', 'peer', 'ratio', 'aim'] as const;
  const all = [Object.fromEntries(columns.map((column) => [column, column])) as unknown as Row, ...rows];
  const widths = columns.map((column) => Math.max(...all.map((row) => row[column].length)));
  return all.map((row) => columns.map((column, i) => row[column].padEnd(widths[i] ?? 0)).join('   ')).join('\n');
}
