/** Maps paths of the service API to the one account and the one service of the development server. */

export const devAccount = 'dev';

export const devService = 'app';

/** The service's name in image names. */
export const devServiceName = `${devAccount}/${devService}`;

/** Each form of a path that names an account or a service, and its replacement. */
const forms: readonly (readonly [RegExp, string])[] = [
  // Every environment has the same image.
  [/^\/v2\/service\/[^/]+\/[^/]+\/[^/]+\/connect\/?$/, `/v2/service/${devServiceName}/connect`],
  [/^\/v2\/service\/[^/]+\/[^/]+/, `/v2/service/${devServiceName}`],
  [/^\/v2\/account\/[^/]+/, `/v2/account/${devAccount}`],
  [/^\/service\/[^/]+\/[^/]+/, `/service/${devServiceName}`],
  [/^(\/v1)?\/user\/[^/]+\/service\/[^/]+/, `$1/user/${devAccount}/service/${devService}`],
  [/^(\/v1)?\/user\/[^/]+\/(services?)$/, `$1/user/${devAccount}/$2`],
];

/** The request target with the account and the service of the development server. */
export function ownTarget(target: string): string {
  const end = target.indexOf('?');
  const path = end < 0 ? target : target.slice(0, end);
  const form = forms.find(([pattern]) => pattern.test(path));
  return form ? path.replace(...form) + target.slice(path.length) : target;
}

/** Whether a request connects to a backend or spawns one. Such a request needs the newest image, so it waits for the build. */
export function spawns(target: string): boolean {
  const [path = ''] = target.split('?', 1);
  return /^\/v2\/service\/[^/]+\/[^/]+\/connect\/?$|^(?:\/v1)?\/user\/[^/]+\/service\/[^/]+\/spawn\/?$|^\/token\/[^/]+\/spawn\/?$/.test(
    path,
  );
}

/** Whether a request deletes the only service. */
export function deletesService(target: string): boolean {
  return /^\/v2\/service\/[^/]+\/[^/]+\/delete\/?(?:\?|$)/.test(target);
}
