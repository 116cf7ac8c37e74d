#!/bin/sh
set -e
if [ "$(id -u)" = 0 ]; then
  chown -R service /var/lib/service
  exec setpriv --reuid=service --regid=service --clear-groups "$0" "$@"
fi
exec "$@"
