/** The end of a backend's log. */
import type { BerthClient } from '../../client/index.ts';

/** Enough for a stack trace. */
const maxLines = 50;

/** A log that can be read arrives within seconds. */
const timeoutMs = 10_000;

/** Reads the last lines. Reports an error as a line, because the caller already reports another failure. */
export async function lastLogLines(client: BerthClient, backend: string): Promise<string[]> {
  const lines: string[] = [];
  try {
    for await (const { line } of client.logs(backend, { follow: false, signal: AbortSignal.timeout(timeoutMs) })) {
      lines.push(line);
      if (lines.length > maxLines) lines.shift();
    }
    return lines;
  } catch (error) {
    return [...lines, `(The log cannot be read: ${error instanceof Error ? error.message : String(error)})`];
  }
}
