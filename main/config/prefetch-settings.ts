/** The variables of fetching images before somebody asks for them, a part of the configuration. */
import { optionalWhole, yesOrNo } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';

export const prefetchSettings = {
  fetchAhead: {
    variable: 'BERTH_FETCH_AHEAD',
    schema: yesOrNo(true),
    defaultText: '`yes`',
    help: 'Whether nodes fetch a new image before somebody asks for it, see [deployment](deployment.md#new-images). `no` on the API: none do. `no` on a worker: this node does not.',
  },
  fetchReserveBytes: {
    variable: 'BERTH_FETCH_RESERVE_BYTES',
    schema: optionalWhole({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    defaultText: 'a tenth of the disk, at most `10737418240` (10 GiB)',
    help: 'How much stays free on the disk with this node’s images when it fetches ahead, see [deployment](deployment.md#new-images). 0: nothing.',
  },
} satisfies Record<string, Setting<unknown>>;
