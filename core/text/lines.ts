import type { Readable } from 'node:stream';

/** The lines of a stream, as they come. Throws when the stream breaks or is destroyed before its end. */
export async function* linesOf(stream: Readable): AsyncGenerator<string> {
  for await (const lines of lineBatchesOf(stream)) yield* lines;
}

/** The same, as many at a time as have come: a step for each would cost more than most lines. No batch is empty. */
export async function* lineBatchesOf(stream: Readable): AsyncGenerator<string[]> {
  let rest = '';
  stream.setEncoding('utf8');
  for await (const chunk of stream as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (lines.length > 0) yield lines;
  }
  if (rest !== '') yield [rest];
}
