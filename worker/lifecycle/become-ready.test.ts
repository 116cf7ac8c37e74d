// Takes about 15 s
// Runs on every engine
import { expect, it } from 'vitest';
import type { Readiness } from '../../contract/readiness.ts';
import { describeWorker } from '../testing/fixture.ts';
import { onFirstEngine, oneOnFirstEngine } from '../testing/test-engine.ts';

const serve = 'exec httpd -f -h /tmp -p $PORT';

await describeWorker('the readiness of a backend', (fixture) => {
  const spawn = async (readiness: Readiness, config: object, script = serve) => {
    const Cmd = ['/bin/sh', '-c', script];
    const imageDigest = await fixture.platform.images.addConfigured({ Cmd, ...config });
    return await fixture.platform.schedule({ imageDigest, readiness });
  };
  /** Waits for a problem. On a busy machine, others come first: the server does not listen yet. */
  const untilProblem = async (id: string, problem: string) =>
    await expect.poll(async () => (await fixture.platform.get(id)).startProblem).toContain(problem);
  const run = async (id: string, ...Cmd: string[]) => {
    const execution = await fixture.platform.containerOf(id).exec({ Cmd });
    (await execution.start({})).resume();
  };

  it.for(oneOnFirstEngine)('waits for a path that answers', async () => {
    const id = await spawn({ type: 'http', path: '/up' }, {});
    await untilProblem(id, 'answers GET /up with 404, expected 200 to 399');
    expect((await fixture.platform.get(id)).status).toBe('waiting');
    await run(id, 'touch', '/tmp/up');
    expect(await fixture.platform.until(id, 'ready')).not.toHaveProperty('startProblem');
    await fixture.platform.end(id);
  });

  it.each<[how: string, healthcheck: object, problem: string]>([
    ['in a shell', { Test: ['CMD-SHELL', 'test -e /tmp/healthy || exit 3'] }, 'which exits with 3'],
    ...onFirstEngine<[string, object, string]>([
      ['without a shell', { Test: ['CMD', '/bin/ls', '/tmp/healthy'] }, 'which exits with 1'],
    ]),
    [
      'that hangs',
      { Test: ['CMD-SHELL', 'test -e /tmp/healthy || exec sleep 60'], Timeout: 1e9 },
      'of its image within 1 seconds',
    ],
  ])('waits for the health check of its image: one %s', async (_what, Healthcheck, problem) => {
    const id = await spawn({ type: 'healthcheck' }, { Healthcheck });
    await untilProblem(id, problem);
    expect((await fixture.platform.get(id)).status).toBe('waiting');
    await run(id, 'touch', '/tmp/healthy');
    await fixture.platform.until(id, 'ready');
    // The engine itself does not run it.
    expect((await fixture.platform.stateOf(id))?.phase).toBe('running');
    expect((await fixture.platform.containerOf(id).inspect()).State.Health).toBeUndefined();
    await fixture.platform.end(id);
  });

  it.for(oneOnFirstEngine)('does not start an image without the health check that its service requires', async () => {
    const id = await spawn({ type: 'healthcheck' }, {});
    expect((await fixture.platform.until(id, 'terminated')).history.at(-1)).toMatchObject({
      failure: "The image has no HEALTHCHECK, and the service's readiness is `healthcheck`",
    });
  });
});
