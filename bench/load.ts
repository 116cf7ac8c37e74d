/** A bounded load of one request, over a few kept-alive connections. */
import { Agent, request } from 'node:http';

export interface LoadOptions {
  /** Default: POST. */
  readonly method?: 'GET' | 'POST';
  readonly url: string;
  readonly body?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly requests: number;
}

/** Sends the requests, and returns the answers per second. Throws at the first response that is not 200. */
export async function requestsPerSecond(options: LoadOptions): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: options.connections });
  let left = options.requests;
  const startedMs = performance.now();
  const worker = async () => {
    while (left-- > 0) await send(options, agent);
  };
  try {
    await Promise.all(Array.from({ length: options.connections }, worker));
    return options.requests / ((performance.now() - startedMs) / 1000);
  } finally {
    agent.destroy();
  }
}

async function send({ method = 'POST', url, body, headers }: LoadOptions, agent: Agent): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const sent = request(url, { method, agent, headers }, (response) => {
      response.resume();
      response.once('error', reject);
      response.once('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`The server returned ${response.statusCode}`));
      });
    });
    sent.once('error', reject);
    sent.end(body);
  });
}
