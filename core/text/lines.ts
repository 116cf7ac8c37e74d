import type { Readable } from 'node:stream';

/** The lines of a stream. Throws if the stream fails or is destroyed before its end. */
export async function* linesOf(stream: Readable): AsyncGenerator<string> {
  for await (const lines of lineBatchesOf(stream)) yield* lines;
}

/** The lines of a stream in batches, as they arrive: a step of iteration for each line would cost more than processing most lines. */
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
