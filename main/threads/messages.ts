/** The messages between the main thread and the threads of the proxy. */
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { CertificatePair } from '../../core/tls/certificate-pair.ts';
import type { Config } from '../config/config.ts';
import type { Role } from '../config/roles.ts';
import type { DriverShare } from '../drivers.ts';
import type { ListenAddress } from '../process/listen-problem.ts';

/** The start data of a thread. */
export interface ThreadData {
  /** Unique among the threads of the process, for logs and metrics. */
  readonly name: string;
  readonly config: Config;
  readonly logLevel: string;
  /** All roles of the process. */
  readonly roles: readonly Role[];
  readonly apiUrl: string;
  readonly share: DriverShare;
  readonly address: ListenAddress;
  /** Whether other threads listen on the same port. */
  readonly reusePort: boolean;
  /** `undefined` if the proxy does not speak TLS. The main thread reads the files for all threads. */
  readonly certificates: readonly CertificatePair[] | undefined;
}

/** The kinds of requests from the main thread to a thread, each with the type of its answer. */
export interface ThreadAnswers {
  /** Answered at once, also while the store and the bus are silent. */
  readonly echo: undefined;
  /** Fails unless the thread can serve. */
  readonly ping: undefined;
  readonly metrics: readonly ThreadMetric[];
  /** Replaces the certificates for new connections. */
  readonly certificates: undefined;
  /** Closes everything, and ends the thread. */
  readonly close: undefined;
}

export type ThreadMetric = MetricObjectWithValues<MetricValue<string>>;

export interface ThreadRequest {
  readonly id: number;
  readonly kind: keyof ThreadAnswers;
  /** For `certificates`. */
  readonly certificates?: readonly CertificatePair[];
}

/** The first message is `opened` or `refused`, which is sent once. `refused`: the user can correct the cause. */
export type ThreadMessage =
  | { readonly kind: 'opened'; readonly hostPort: string }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'answer'; readonly id: number; readonly value: ThreadAnswers[keyof ThreadAnswers] }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string };
