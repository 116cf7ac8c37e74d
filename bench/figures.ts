/** Figures of repeated measurements. */

/** The middle one. */
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

/** What both sides measured in turn: one value a round. */
export interface Pairs {
  readonly ours: number[];
  readonly peer: number[];
}

/** Who is measured first in a round: each of them as often, as what comes second finds the machine otherwise. */
export function sidesIn(round: number): readonly (keyof Pairs)[] {
  return round % 2 === 0 ? ['ours', 'peer'] : ['peer', 'ours'];
}

/** Measures both in turn; the first rounds warm up and do not count. A measurement gives a rate, or a time. */
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

/** One line of a report: ours, the peer's, their ratio, and what was aimed at. */
export interface Row {
  readonly what: string;
  readonly ours: string;
  readonly peer: string;
  readonly ratio: string;
  readonly aim: string;
}

/**
 * A row of what was measured in turn. Its ratio is the middle one of the rounds' own ratios: where others use the machine, too,
 * some rounds are slower on both sides.
 *
 * @param show - how the values of a side read
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
