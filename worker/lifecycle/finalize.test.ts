import { describe, expect, it } from 'vitest';
import { openLog } from '../../core/log/log.ts';
import { isRemoved } from '../testing/fixture.ts';
import { eventually, openTestPlatform, polite, whyNoTests } from '../testing/test-platform.ts';

const why = await whyNoTests();

describe.skipIf(why !== undefined)(`the log line about the end of a backend ${why ?? ''}`, () => {
  it('names the component that ended it, and the reason', async () => {
    const lines: Record<string, unknown>[] = [];
    const log = openLog('info', { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[number]) });
    await using platform = await openTestPlatform();
    await using _worker = await platform.openWorker({ log });
    const imageDigest = await platform.images.add(polite);
    const [stopped, lost] = [await platform.schedule({ imageDigest }), await platform.schedule({ imageDigest })];
    await Promise.all([platform.until(stopped, 'ready'), platform.until(lost, 'ready')]);
    await platform.end(stopped);
    await platform.declareLost(lost);
    await eventually(async () => ((await isRemoved(platform, stopped)) ? await isRemoved(platform, lost) : undefined));
    const linesOf = (id: string) => lines.filter(({ backend, msg }) => backend === id && /ended/.test(String(msg)));
    const byWorker = { msg: 'Backend ended', endedBy: 'worker', kind: 'hard', reason: 'external', exitCode: 137 };
    expect(linesOf(stopped)).toMatchObject([byWorker]);
    expect(linesOf(lost)).toMatchObject([{ msg: 'Removing the container of an ended backend' }]);
  });
});
