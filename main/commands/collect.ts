/** `berth collect [--dry-run] [--json]` and `berth verify [--repair] [--json]`. */
import { sizeText } from '../../core/text/size-text.ts';
import { gcEvent, verificationEvent } from '../../registry/index.ts';
import type { GcEvent, GcSummary, VerificationEvent, VerificationSummary } from '../../registry/index.ts';
import { requestTask, writeEvent } from './task-client.ts';
import type { CommandRequest } from './task-client.ts';

/** Collects garbage. Returns the exit code: 1 if the collection was not completed. */
export async function collectCommand(request: CommandRequest & { readonly dryRun: boolean }): Promise<number> {
  const query = new URLSearchParams({ ...(request.dryRun && { dry_run: 'yes' }) });
  let isDone = false;
  for await (const line of requestTask({ ...request, name: 'collect', query })) {
    const event = gcEvent.safeParse(line).data;
    isDone = event?.type === 'collected';
    writeEvent(request, line, event && gcLine(event, request.dryRun));
  }
  return isDone ? 0 : 1;
}

/** Verifies the stored content. Returns the exit code: 1 if the verification was not completed, or a problem remains. */
export async function verifyCommand(request: CommandRequest & { readonly repair: boolean }): Promise<number> {
  const query = new URLSearchParams({ ...(request.repair && { repair: 'yes' }) });
  let isGood = false;
  for await (const line of requestTask({ ...request, name: 'verify', query })) {
    const event = verificationEvent.safeParse(line).data;
    isGood = event?.type === 'verified' && event.problems === event.repaired;
    writeEvent(request, line, event && verificationLine(event));
  }
  return isGood ? 0 : 1;
}

/** Describes an event of a garbage collection in a sentence. */
function gcLine(event: GcEvent, isDry: boolean): string {
  if (event.type === 'collected') return event.dry_run ? drySummary(event) : summary(event);
  const what = [counted(event.manifests, 'manifest'), counted(event.tags, 'tag'), counted(event.blobs, 'blob')];
  return `${event.repository}: ${isDry ? 'would lose' : 'lost'} ${listed(what)} (${sizeText(event.bytes)})`;
}

/** Describes an event of a verification in a sentence. */
function verificationLine(event: VerificationEvent): string {
  if (event.type === 'verified') return verified(event);
  return `${event.repaired ? 'repaired' : 'problem'}: ${event.kind} ${event.digest}: ${event.message}`;
}

function summary(done: GcSummary): string {
  const { marked, removed } = done;
  const lines = [
    `Collected in ${counted(done.repositories, 'repository', 'repositories') || 'no repository'}: ${deletedParts(done)}.`,
    `Removed ${counted(removed.blobs, 'blob') || 'no blob'} (${sizeText(removed.bytes)}).`,
  ];
  if (marked.blobs > 0 && done.removal_wait_ms > 0) {
    const minutes = Math.ceil(done.removal_wait_ms / 60_000);
    lines.push(
      `${counted(marked.blobs, 'blob')} (${sizeText(marked.bytes)}) that no repository uses can be removed in ` +
        `${counted(minutes, 'minute')}, by the running platform or by the next collection.`,
    );
  }
  return lines.join('\n');
}

function drySummary(done: GcSummary): string {
  const { marked, repositories } = done;
  return [
    `Garbage collection would remove, in ${counted(repositories, 'repository', 'repositories') || 'no repository'}: ${deletedParts(done)}.`,
    `In the end it would free ${counted(marked.blobs, 'blob') || 'no blob'} (${sizeText(marked.bytes)}). Nothing was changed.`,
  ].join('\n');
}

function deletedParts({ manifests, tags, links, uploads }: GcSummary): string {
  return listed([
    counted(manifests, 'manifest'),
    counted(tags, 'tag'),
    counted(links, 'link to a blob', 'links to blobs'),
    counted(uploads, 'abandoned upload'),
  ]);
}

function verified({ blobs, bytes, manifests, tags, repositories, problems, repaired }: VerificationSummary): string {
  const what = listed([
    blobs > 0 ? `${counted(blobs, 'blob')} (${sizeText(bytes)})` : '',
    counted(manifests, 'manifest'),
    counted(tags, 'tag'),
  ]);
  const where = counted(repositories, 'repository', 'repositories') || 'no repository';
  const found = counted(problems, 'problem');
  return `Checked ${what} in ${where}: ${found === '' ? 'no problem' : `${found}, ${repaired} repaired`}.`;
}

/** A number with its noun; an empty text for 0. */
function counted(count: number, one: string, many = `${one}s`): string {
  return count === 0 ? '' : `${count} ${count === 1 ? one : many}`;
}

function listed(parts: readonly string[]): string {
  const present = parts.filter(Boolean);
  if (present.length === 0) return 'nothing';
  return present.length === 1 ? present.join('') : `${present.slice(0, -1).join(', ')} and ${present.at(-1)}`;
}
