import { once } from 'node:events';
import { connect } from 'node:tls';

/** The serial number of the certificate at a port of this machine. */
export async function serialAt(url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const name = /^[\d.]+$/.test(hostname) ? {} : { servername: hostname };
  const socket = connect({ host: '127.0.0.1', port: Number(port), rejectUnauthorized: false, ...name });
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}
