/** `berth quota [ACCOUNT [SIZE]] [--json]`. */
import { ConfigError } from '../../core/config/settings.ts';
import { parseSize, sizeText } from '../../core/text/size-text.ts';
import { quotaEvent } from '../../registry/index.ts';
import type { QuotaEvent } from '../../registry/index.ts';
import { requestTask, writeEvent } from './task-client.ts';
import type { CommandRequest } from './task-client.ts';

/** Shows the quota of one account or of all, or sets the quota of one. Returns the exit code: 1 if the account does not exist. */
export async function quotaCommand(request: CommandRequest & { readonly words: readonly string[] }): Promise<number> {
  let isKnown = true;
  for await (const line of requestTask({ ...request, name: 'quota', query: queryOf(request.words) })) {
    const event = quotaEvent.safeParse(line).data;
    isKnown &&= event?.type === 'quota';
    writeEvent(request, line, event && quotaLine(event));
  }
  return isKnown ? 0 : 1;
}

function queryOf([account, size]: readonly string[]): URLSearchParams {
  return new URLSearchParams({ ...(account !== undefined && { account }), ...(size !== undefined && bytesOf(size)) });
}

function bytesOf(size: string): { max_bytes: string } {
  if (size === 'default') return { max_bytes: size };
  if (size === 'none') return { max_bytes: '0' };
  const bytes = parseSize(size);
  // 0 is ambiguous: it could mean "may store nothing" or "no limit".
  if (!bytes)
    throw new ConfigError(`Not a size: "${size}". Use a size such as 50GiB, "none" for no limit, or "default"`);
  return { max_bytes: String(bytes) };
}

/** Describes the quota of an account in a sentence. */
function quotaLine(event: QuotaEvent): string {
  if (event.type === 'unknown-account') return `There is no account "${event.account}"`;
  const limit = event.max_bytes === 0 ? ', no limit' : ` of ${sizeText(event.max_bytes)}`;
  return `${event.account}: ${sizeText(event.stored_bytes)}${limit}${event.is_own ? '' : ' (as all accounts)'}`;
}
