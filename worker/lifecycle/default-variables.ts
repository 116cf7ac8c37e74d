/** Variables that let ordinary programs work behind a session URL. The image and the request override them. */
import type { ImageConfig } from '../docker/image-config.ts';

/** @param env - the variables of the request and of the platform */
export function defaultVariables(
  { variables }: ImageConfig,
  env: Readonly<Record<string, string>>,
): Record<string, string> {
  const all = {
    // Many frameworks listen on localhost otherwise.
    HOST: '0.0.0.0',
    ...viteVariables(env['SESSION_BACKEND_URL']),
  };
  return Object.fromEntries(Object.entries(all).filter(([name]) => !variables.includes(name)));
}

/** The development server of Vite answers no other hosts than `*.localhost`, and those that this variable names. */
function viteVariables(url: string | undefined): Record<string, string> {
  const host = URL.parse(url ?? '')?.hostname ?? '';
  const domain = host.slice(host.indexOf('.') + 1);
  return host.includes('.') && domain !== 'localhost' ? { __VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS: `.${domain}` } : {};
}
