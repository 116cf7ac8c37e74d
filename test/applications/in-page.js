/* Functions that run in the page of an application, at its origin. `applications.ts` reads them as text. */

/** The URL of a WebSocket of the application. The path is relative to the page unless it begins with a slash. */
function socketUrl(path) {
  return new URL(path, location.href).href.replace('http', 'ws');
}

async function openSocket(path) {
  const socket = new WebSocket(socketUrl(path));
  socket.binaryType = 'arraybuffer';
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', () => reject(new Error('The WebSocket did not open')));
  });
  return socket;
}

/** Sends bytes through one WebSocket, and resolves when a second WebSocket has received them. */
export async function passOn(path, sent) {
  const receiver = await openSocket(path);
  const received = new Promise((resolve) => {
    receiver.addEventListener('message', ({ data }) => {
      // The first message is a greeting.
      const all = [...new Uint8Array(data)];
      if (all.join() === sent.join()) resolve(all);
    });
  });
  const sender = await openSocket(path);
  sender.send(new Uint8Array(sent));
  return await received;
}

/** Sends bytes, and returns the first answer as text. */
export async function ask(path, sent) {
  const socket = await openSocket(path);
  const answer = new Promise((resolve, reject) => {
    socket.addEventListener('message', ({ data }) => resolve(new TextDecoder().decode(data)));
    socket.addEventListener('close', ({ code, reason }) => reject(new Error(`Closed: ${code} ${reason}`)));
  });
  socket.send(new Uint8Array(sent));
  return await answer;
}

/** Starts a kernel of Jupyter, and returns the value of an expression. */
export async function computeInKernel(code) {
  const xsrf = /_xsrf=([^;]+)/.exec(document.cookie)?.[1] ?? '';
  const answer = await fetch('/api/kernels', { method: 'POST', headers: { 'X-XSRFToken': xsrf }, body: '{}' });
  if (!answer.ok) throw new Error(`The kernel did not start: ${answer.status} ${await answer.text()}`);
  const { id } = await answer.json();
  const socket = await openSocket(`/api/kernels/${id}/channels`);
  const ids = { msg_id: String(Math.random()), session: String(Math.random()) };
  const header = { ...ids, username: '', date: new Date().toISOString(), msg_type: 'execute_request', version: '5.3' };
  const content = { code, silent: false, store_history: true, user_expressions: {}, allow_stdin: false };
  const result = new Promise((resolve, reject) => {
    socket.addEventListener('close', () => reject(new Error('The kernel closed the WebSocket')));
    socket.addEventListener('message', ({ data }) => {
      if (typeof data !== 'string') return;
      const message = JSON.parse(data);
      if (message.msg_type === 'execute_result') resolve(message.content.data['text/plain']);
    });
  });
  socket.send(JSON.stringify({ channel: 'shell', header, parent_header: {}, metadata: {}, content }));
  return await result;
}

/** Sends a command to the Redis server of Redis Commander, and returns the answer. The page has a button for the connection. */
export async function askRedis(command) {
  const connection = encodeURIComponent(document.querySelector('#firstConnection').value);
  // The jQuery of the page adds the log-in.
  return (await globalThis.$.post(`apiv2/exec/${connection}`, { cmd: command })).data;
}

/** The colour of a pixel that noVNC shows. */
export function colourOfCanvas(x, y) {
  const canvas = document.querySelector('canvas');
  return canvas ? canvas.getContext('2d').getImageData(x, y, 1, 1).data.slice(0, 3).join() : '';
}
