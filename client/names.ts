/** The two parts of a service's name, `<account>/<service>`. Throws `TypeError` for another form. */
export function servicePath(name: string): { account: string; service: string } {
  const [account = '', service = '', ...rest] = name.split('/');
  if (account === '' || service === '' || rest.length > 0) {
    throw new TypeError(`service: ${JSON.stringify(name)} is not of the form <account>/<service>`);
  }
  return { account, service };
}
