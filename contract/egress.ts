/** Which networks a backend may open connections to. */
import { z } from 'zod';

/** Each network is a rule of the firewall. */
const maxNetworks = 64;

const network = z.cidrv4().meta({ examples: ['10.20.0.0/16'] });

export const egress = z.union([z.enum(['open', 'none']), z.array(network).min(1).max(maxNetworks)]).meta({
  id: 'Egress',
  description:
    'The networks that backends may open connections to. `open`: all but the machine they run on, other backends and cloud metadata; `none`: none; a list: only these IPv4 networks. Without a DNS server in the list, names do not resolve',
  examples: ['open', ['203.0.113.0/24']],
});

export type Egress = z.infer<typeof egress>;
