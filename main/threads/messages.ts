/** What the main thread and the threads of the proxy send each other. */
import type { MetricObjectWithValues, MetricValue } from 'prom-client';
import type { CertificatePair } from '../../core/tls/certificate-pair.ts';
import type { Config } from '../config/config.ts';
import type { Role } from '../config/roles.ts';
import type { DriverShare } from '../drivers.ts';
import type { ListenPlace } from '../process/listen-problem.ts';

/** The data with which a thread is started. */
export interface ThreadData {
  /** Unique among the threads of the process, for logs and metrics. */
  readonly name: string;
  readonly config: Config;
  readonly logLevel: string;
  /** All roles of the process. */
  readonly roles: readonly Role[];
  readonly apiUrl: string;
  readonly share: DriverShare;
  readonly place: ListenPlace;
  /** Whether other threads listen on the same port. */
  readonly reusePort: boolean;
  /** If the proxy speaks TLS. The main thread reads the files for all. */
  readonly certificates: readonly CertificatePair[] | undefined;
}

/** What the main thread can ask of a thread, and the answers. */
export interface ThreadAnswers {
  /** The thread can serve. */
  readonly ping: undefined;
  readonly metrics: readonly ThreadMetric[];
  /** The thread uses other certificates for new connections. */
  readonly certificates: undefined;
  /** The thread has closed everything, and ends. */
  readonly close: undefined;
}

export type ThreadMetric = MetricObjectWithValues<MetricValue<string>>;

export interface ThreadRequest {
  readonly id: number;
  readonly kind: keyof ThreadAnswers;
  /** For `certificates`. */
  readonly certificates?: readonly CertificatePair[];
}

/** `opened` or `refused` comes once, and first. `refused`: the user can correct the cause. */
export type ThreadMessage =
  | { readonly kind: 'opened'; readonly hostPort: string }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'answer'; readonly id: number; readonly value: ThreadAnswers[keyof ThreadAnswers] }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string };
