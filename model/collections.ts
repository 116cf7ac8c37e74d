/** Every collection of the model, for opening a store. */
import { accessTokens } from './access-token.ts';
import { accounts } from './account.ts';
import { administrators } from './administrators.ts';
import { auditRecords } from './audit.ts';
import { attemptBuckets } from './attempts.ts';
import { backends } from './backend.ts';
import { cliLogins } from './cli-login.ts';
import { images } from './image.ts';
import { keys } from './key.ts';
import { nodes } from './node.ts';
import { routes } from './route.ts';
import { services } from './service.ts';
import { setups } from './setup.ts';
import { spawnTokens } from './spawn-token.ts';
import { proxies, traffic } from './traffic.ts';
import { trustRules } from './trust-rule.ts';
import { usedIdTokens } from './used-id-token.ts';
import { users } from './user.ts';

export const modelCollections = [
  accounts,
  users,
  administrators,
  setups,
  attemptBuckets,
  auditRecords,
  trustRules,
  usedIdTokens,
  cliLogins,
  accessTokens,
  services,
  images,
  backends,
  keys,
  routes,
  nodes,
  traffic,
  proxies,
  spawnTokens,
] as const;
