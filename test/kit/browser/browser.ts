/** Pages in a real Chromium. A test file that imports this belongs to the project `drivers`. */
import { chromium } from 'playwright-core';
import type { Browser, ConsoleMessage, Page } from 'playwright-core';
import { describe } from 'vitest';
import { chromiumProgram } from '../packages/chromium.ts';
import { canOpenNetworkNamespace, openNetworkNamespace } from './network-namespace.ts';

const program = await chromiumProgram();

/** In addition to Playwright's own flags. Names of other machines do not resolve, so that no test depends on the internet. */
const flags = [
  '--disable-gpu',
  '--disable-quic',
  '--disable-sync',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1',
];

/** A busy machine needs some seconds to start Chromium and to show a page. */
const timeoutMs = 60_000;

/** Declares tests that need Chromium. Without it they are skipped. */
export function inChromium(declare: () => void): void {
  describe.skipIf(program === undefined)(
    `in Chromium${program === undefined ? ' (skipped: it is not installed)' : ''}`,
    () => {
      declare();
    },
  );
}

export interface PageOptions {
  /** Whether the page may run scripts. Default: true. */
  readonly javaScript?: boolean;
  /** The color scheme that the user prefers. Default: `light`. */
  readonly colorScheme?: 'light' | 'dark';
  /** Whether certificates that no authority has issued are accepted. Default: false. */
  readonly acceptsAnyCertificate?: boolean;
  /** The width and height of the window in pixels. Default: 1280 × 800. */
  readonly size?: { readonly width: number; readonly height: number };
}

/** One Chromium for all tests of a file. Open it in `beforeAll`, and dispose it in `afterAll`. */
export class TestBrowser implements AsyncDisposable {
  readonly #browser: Browser;
  readonly #owned: AsyncDisposable;

  private constructor(browser: Browser, owned: AsyncDisposable) {
    this.#browser = browser;
    this.#owned = owned;
  }

  static async open(): Promise<TestBrowser> {
    if (program === undefined) throw new Error('Chromium is not installed');
    await using opening = new AsyncDisposableStack();
    const namespace = canOpenNetworkNamespace ? opening.use(await openNetworkNamespace(program)) : undefined;
    const browser = await chromium.launch({
      executablePath: namespace?.program ?? program,
      args: flags,
      chromiumSandbox: false,
      timeout: timeoutMs,
      ...(namespace && { proxy: { server: namespace.proxy } }),
    });
    opening.defer(async () => await browser.close());
    return new TestBrowser(browser, opening.move());
  }

  /** Opens a page with its own cookies and storage. */
  async newPage({
    javaScript = true,
    colorScheme = 'light',
    acceptsAnyCertificate = false,
    size,
  }: PageOptions = {}): Promise<TestPage> {
    const context = await this.#browser.newContext({
      javaScriptEnabled: javaScript,
      colorScheme,
      ignoreHTTPSErrors: acceptsAnyCertificate,
      viewport: size ?? { width: 1280, height: 800 },
    });
    context.setDefaultTimeout(timeoutMs);
    return new TestPage(await context.newPage());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }
}

/** A page, its requests and its errors. `page` is Playwright's: https://playwright.dev/docs/api/class-page */
export class TestPage implements AsyncDisposable {
  readonly page: Page;
  /** The URL of each request, in order, redirects included. */
  readonly requested: string[] = [];
  /** The errors that the browser reported: of scripts, blocked resources and failed requests. */
  readonly problems: string[] = [];

  constructor(page: Page) {
    this.page = page;
    page.on('request', (request) => this.requested.push(request.url()));
    page.on('pageerror', (error) => this.problems.push(error.message));
    page.on('console', (message: ConsoleMessage) => {
      if (message.type() === 'error') this.problems.push(message.text());
    });
  }

  /** The requests to servers other than these. A resource within the page (`data:`, `blob:`) is not a request. */
  requestsOutside(...origins: readonly string[]): string[] {
    return this.requested.filter((url) => /^(?:http|ws)s?:/.test(url) && !origins.includes(new URL(url).origin));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.page.context().close();
  }
}
