/** The proxy under test, on a socket, with a session whose backend records what it receives. */
import type { ProxyDeps } from '../../proxy/open-proxy.ts';
import { openFixture, spawnReady } from '../../proxy/testing/fixture.ts';
import type { Fixture, Session } from '../../proxy/testing/fixture.ts';
import { labelOfToken } from '../../model/session-host.ts';
import { RecordingBackend } from './recording-backend.ts';

export const sessionDomain = 'sessions.example';

/** A session, and its backend. */
export interface RecordedSession extends Session {
  readonly backendServer: RecordingBackend;
  /** The host of the session. */
  readonly host: string;
}

export class ProxyUnderTest implements AsyncDisposable {
  readonly fixture: Fixture;
  readonly #owned: AsyncDisposableStack;

  private constructor(fixture: Fixture, owned: AsyncDisposableStack) {
    this.fixture = fixture;
    this.#owned = owned;
  }

  static async open(deps: Partial<ProxyDeps> = {}): Promise<ProxyUnderTest> {
    const owned = new AsyncDisposableStack();
    return new ProxyUnderTest(owned.use(await openFixture({ sessionDomain, ...deps })), owned);
  }

  get port(): number {
    return this.fixture.port;
  }

  /** Adds a session. */
  async session(about: { user?: string; auth?: Record<string, unknown> } = {}): Promise<RecordedSession> {
    const backendServer = this.#owned.use(await RecordingBackend.open());
    const session = await spawnReady(this.fixture, backendServer, about);
    return { ...session, backendServer, host: `${labelOfToken(session.token)}.${sessionDomain}` };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }
}
