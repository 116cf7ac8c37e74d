import type { ApplicationPackages } from '../kit/packages/application-packages.ts';
import type { TestPage } from '../kit/browser/browser.ts';

/** An ordinary application, with a Dockerfile in the folder of its name. */
export interface Application {
  readonly name: string;
  /** For the table in the documentation. */
  readonly title: string;
  readonly packages?: ApplicationPackages;
  /** What its service must set. Default: nothing. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** What the documentation says was used. */
  readonly used: string;
  /** Other servers from which its page loads something by itself. */
  readonly loadsFrom?: readonly string[];
  /** Uses it as a person would, at the URL of its session. Throws if something does not work. */
  readonly use: (opened: TestPage, url: string) => Promise<void>;
}
