/**
 * The Linux capabilities of containers by default: those of Docker, without NET_RAW (forged packets), MKNOD (devices), SYS_CHROOT,
 * AUDIT_WRITE (the log of the machine) and SETFCAP (programs with their own capabilities). An image that starts as root can still
 * change owners, listen on any port, end its processes and continue as another user.
 */
export const defaultCapabilities = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'NET_BIND_SERVICE',
  'SETGID',
  'SETPCAP',
  'SETUID',
] as const;
