import type { TestPage } from '../kit/browser/browser.ts';

/** Base images of the Dockerfiles: a small Debian, also with Node.js and packages from npm, or with packages from PyPI. */
export type Base = 'debian' | 'node' | 'frontend' | 'python';

/** Runs a script in the container of an application, as a developer would in a terminal. */
export type InContainer = (script: string) => Promise<unknown>;

/** An ordinary application, with a Dockerfile in the folder of its name. */
export interface Application {
  readonly name: string;
  /** The title in the table of the documentation. */
  readonly title: string;
  /** Its base image. */
  readonly base: Base;
  /** Whether it also works in the path form of a URL. Others need a host, because their links are absolute. */
  readonly worksByPath?: boolean;
  /** The settings that its service needs. Default: none. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** The tested features, for the table of the documentation. */
  readonly used: string;
  /** Other servers from which its page loads resources. */
  readonly loadsFrom?: readonly string[];
  /** Uses the application as a user would, at the URL of its session. Throws if a feature does not work. */
  readonly use: (opened: TestPage, url: string, inContainer: InContainer) => Promise<void>;
}
