/** Everything that the API answers: its endpoints, and its pages. */
import { auditEndpoints } from './accounts/audit.ts';
import { limitEndpoints } from './accounts/limits.ts';
import { cliLoginEndpoints } from './accounts/cli-logins.ts';
import { accountPages } from './accounts/pages.ts';
import { ownLogInEndpoints } from './accounts/own-log-ins.ts';
import { peopleEndpoints } from './accounts/people.ts';
import { sessionEndpoints } from './accounts/sessions.ts';
import { trustEndpoints } from './accounts/trust.ts';
import { tokenEndpoints } from './accounts/tokens.ts';
import type { Mounted } from './app.ts';
import { mountReadyPage } from './ready/ready.ts';
import { nodeRoutes } from './nodes.ts';
import { toolRoutes } from './tools.ts';
import { mountReference } from './reference/reference.ts';
import { olderEndpoints } from './v1/endpoints.ts';
import { backendEndpoints } from './v2/backends.ts';
import { imageArchiveEndpoints } from './v2/image-archives.ts';
import { serviceSettingsEndpoints } from './v2/service-settings.ts';
import { serviceEndpoints } from './v2/services.ts';

export const apiRoutes: readonly Mounted[] = [
  ...serviceEndpoints,
  ...serviceSettingsEndpoints,
  ...backendEndpoints,
  ...imageArchiveEndpoints,
  ...tokenEndpoints,
  ...peopleEndpoints,
  ...sessionEndpoints,
  ...ownLogInEndpoints,
  ...cliLoginEndpoints,
  ...limitEndpoints,
  ...auditEndpoints,
  ...trustEndpoints,
  ...nodeRoutes,
  ...olderEndpoints,
  ...toolRoutes,
  { mount: mountReadyPage },
  { mount: mountReference },
  accountPages,
];
