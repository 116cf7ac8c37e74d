/** How backends are started, limited and stopped. */
import { z } from 'zod';
import { oneOf, optionalText, optionalWhole, whole, wordList, yesOrNo } from '../../core/config/settings.ts';
import type { Setting } from '../../core/config/settings.ts';
import { defaultCapabilities } from '../../model/capabilities.ts';
import { yearSeconds } from './retention-settings.ts';

export const backendSettings = {
  startTimeoutSeconds: {
    variable: 'BERTH_START_TIMEOUT_SECONDS',
    schema: whole({ min: 1, max: 24 * 3600, or: 300 }),
    help: 'How long a backend may take to become ready, without the time for pulling its image and waiting for the holder of its key to end.',
  },
  pullTimeoutSeconds: {
    variable: 'BERTH_PULL_TIMEOUT_SECONDS',
    schema: whole({ min: 1, max: 24 * 3600, or: 900 }),
    help: 'How long a node may take to pull an image.',
  },
  prefetch: {
    variable: 'BERTH_PREFETCH',
    schema: yesOrNo(true),
    help: 'Whether nodes prefetch new images, see [deployment](deployment.md#new-images). `no` on the API: no node does. `no` on a worker: this node does not.',
  },
  prefetchReserveBytes: {
    variable: 'BERTH_PREFETCH_RESERVE_BYTES',
    schema: optionalWhole({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    defaultText: 'a tenth of the disk, at most `10737418240` (10 GiB)',
    help: 'How much space stays free on the disk with this node’s images when it prefetches, see [deployment](deployment.md#new-images). 0: none.',
  },
  stopGraceSeconds: {
    variable: 'BERTH_STOP_GRACE_SECONDS',
    schema: whole({ min: 1, max: 3600, or: 30 }),
    help: 'How long a backend may continue after SIGTERM before it is killed.',
  },
  defaultMaxIdleSeconds: {
    variable: 'BERTH_DEFAULT_MAX_IDLE_SECONDS',
    schema: whole({ min: 1, max: yearSeconds, or: 300 }),
    help: 'How long a backend continues after its last connection was closed, if neither the connect request nor the service sets it.',
  },
  maxIdleSecondsLimit: {
    variable: 'BERTH_MAX_IDLE_SECONDS_LIMIT',
    schema: whole({ min: 1, max: yearSeconds, or: yearSeconds }),
    defaultText: '`31536000` (a year)',
    help: 'The highest `max_idle_seconds` that a connect request or a service may set. A higher default is lowered to it.',
  },
  defaultLifetimeSeconds: {
    variable: 'BERTH_DEFAULT_LIFETIME_SECONDS',
    schema: whole({ min: 0, max: yearSeconds, or: 0 }),
    defaultText: '`0` (no limit)',
    help: 'How long a backend may run in total, from `ready`, if the connect request does not set it. 0: no limit.',
  },
  lifetimeSecondsLimit: {
    variable: 'BERTH_LIFETIME_SECONDS_LIMIT',
    schema: whole({ min: 1, max: yearSeconds, or: yearSeconds }),
    defaultText: '`31536000` (a year)',
    help: 'The highest `lifetime_limit_seconds` that a connect request may set. A higher default is lowered to it.',
  },
  defaultMemoryBytes: {
    variable: 'BERTH_DEFAULT_MEMORY_BYTES',
    schema: whole({ min: 6 * 1024 * 1024, max: Number.MAX_SAFE_INTEGER, or: 1024 * 1024 * 1024 }),
    help: 'Memory limit of a backend, if neither the connect request nor the service sets it.',
  },
  memoryBytesLimit: {
    variable: 'BERTH_MEMORY_BYTES_LIMIT',
    schema: whole({ min: 6 * 1024 * 1024, max: Number.MAX_SAFE_INTEGER, or: 16 * 1024 * 1024 * 1024 }),
    help: 'The highest `memory_limit_bytes` that a connect request or a service may set. A higher default is lowered to it.',
  },
  defaultCpuPercent: {
    variable: 'BERTH_DEFAULT_CPU_PERCENT',
    schema: optionalWhole({ min: 0, max: 100_000 }),
    defaultText: 'half of the processors of the node, at least one',
    help: 'CPU limit of a backend in percent of one processor, if neither the connect request nor the service sets `cpu_period_percent`. 0: no limit.',
  },
  diskBytesLimit: {
    variable: 'BERTH_DISK_BYTES_LIMIT',
    schema: whole({ min: 0, max: Number.MAX_SAFE_INTEGER, or: 10 * 1024 * 1024 * 1024 }),
    help: 'How many bytes a backend may write to the file system of its container. Its mount and the volumes of its image do not count. The storage driver of the engine enforces the limit if it can (overlay2 on XFS with project quotas, btrfs, zfs); otherwise the worker measures every 30 seconds and stops the backend. 0: no limit.',
  },
  pidsLimit: {
    variable: 'BERTH_PIDS_LIMIT',
    schema: whole({ min: 1, max: 1_000_000, or: 512 }),
    help: 'How many processes and threads a backend may have.',
  },
  // Enough for any server, and few enough that one backend cannot use up the descriptors of its machine.
  openFilesLimit: {
    variable: 'BERTH_OPEN_FILES_LIMIT',
    schema: whole({ min: 64, max: 1_048_576, or: 65_536 }),
    help: 'How many files each process of a backend may have open. A Docker Engine that may not raise its own limit that far, for example in a container, keeps its own; the worker detects this when a start fails, and retries.',
  },
  capabilities: {
    variable: 'BERTH_CAPABILITIES',
    schema: wordList(
      /^(?!CAP_)[A-Z_]+$/,
      'Use names of capabilities without CAP_, separated by commas, or `none`',
      defaultCapabilities,
    ),
    help: 'The Linux capabilities that backends keep if their service has the security profile `default`, see [applications](applications.md#what-a-container-may-do). All others are dropped. `none`: no capability.',
  },
  firewall: {
    variable: 'BERTH_FIREWALL',
    schema: oneOf(['auto', 'required', 'off'], 'auto'),
    help: 'Firewall rules: backends cannot reach services of their machine or cloud metadata, other users of the machine cannot reach backends, and egress is limited, see [applications](applications.md#what-a-container-may-reach). They need root and iptables in the network namespace of the Docker Engine. If they cannot be set up, `auto` logs a warning, and `required` runs no backends.',
  },
  dnsServers: {
    variable: 'BERTH_DNS_SERVERS',
    schema: wordList(/^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}$/, 'Use IPv4 addresses, separated by commas'),
    defaultText: 'those of the machine',
    help: 'The IPv4 addresses of the DNS servers of backends, which containers must be able to reach. A backend whose service limits egress to a list of networks uses only the servers in these networks; if there is none, it cannot resolve names.',
  },
  containerRuntime: {
    variable: 'BERTH_CONTAINER_RUNTIME',
    schema: optionalText(z.string().regex(/^[\w.-]+$/, 'Use the name of a runtime of the Docker Engine')),
    defaultText: 'the Docker Engine’s default',
    help: 'The OCI runtime for backends, for example `runsc`.',
  },
  mountFolder: {
    variable: 'BERTH_MOUNT_FOLDER',
    schema: optionalText(z.string().regex(/^(?:\/|off$)/, 'Use an absolute path, or "off"')),
    defaultText: '`mounts` in the data folder',
    help: 'The folder of this machine in which each backend that requests `mount` gets its own folder; `off` refuses mounts. Only the user that runs the platform may enter it. If it is a separate file system, mount it `nosuid,nodev`.',
  },
} satisfies Record<string, Setting<unknown>>;
