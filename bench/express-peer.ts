/** The peer of the service API: an Express server that only parses the same body, if any, and returns the same amount of JSON. */
import express from 'express';

const answer = {
  backend_id: 'x'.repeat(12),
  url: 'x'.repeat(70),
  token: 'x'.repeat(43),
  secret_token: 'x'.repeat(43),
  ready_url: 'x'.repeat(90),
  status_url: 'x'.repeat(60),
  status: 'ready',
  spawned: false,
};
const app = express().use(express.json());
app.all('/', (_request, response) => void response.json(answer));
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.stdout.write(`http://127.0.0.1:${address.port}/\n`);
});
