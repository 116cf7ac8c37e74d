import type { TestPage } from '../kit/browser/browser.ts';

/** Images that Dockerfiles are built upon: a small Debian, and the same with Node.js and packages from npm, or with those from PyPI. */
export type Base = 'debian' | 'node' | 'frontend' | 'python';

/** Runs a script in the container of an application, as a developer would in a terminal. */
export type InContainer = (script: string) => Promise<unknown>;

/** An ordinary application, with a Dockerfile in the folder of its name. */
export interface Application {
  readonly name: string;
  /** For the table in the documentation. */
  readonly title: string;
  /** What its image is built upon. */
  readonly base: Base;
  /** Whether it works in the path form of a URL, too. Others need a host, because their links are absolute. */
  readonly worksByPath?: boolean;
  /** What its service must set. Default: nothing. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** What the documentation says was used. */
  readonly used: string;
  /** Other servers from which its page loads something by itself. */
  readonly loadsFrom?: readonly string[];
  /** Uses it as a person would, at the URL of its session. Throws if something does not work. */
  readonly use: (opened: TestPage, url: string, inContainer: InContainer) => Promise<void>;
}
