/** The settings for prefetching images. */
import { optionalWhole, yesOrNo } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';

export const prefetchSettings = {
  prefetch: {
    variable: 'BERTH_FETCH_AHEAD',
    schema: yesOrNo(true),
    defaultText: '`yes`',
    help: 'Whether nodes prefetch new images, see [deployment](deployment.md#new-images). `no` on the API: no node does. `no` on a worker: this node does not.',
  },
  prefetchReserveBytes: {
    variable: 'BERTH_FETCH_RESERVE_BYTES',
    schema: optionalWhole({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    defaultText: 'a tenth of the disk, at most `10737418240` (10 GiB)',
    help: 'How much space stays free on the disk with this node’s images when it prefetches, see [deployment](deployment.md#new-images). 0: none.',
  },
} satisfies Record<string, Setting<unknown>>;
