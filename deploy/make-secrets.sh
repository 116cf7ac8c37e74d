#!/bin/sh
# Makes the secrets of a deployment, once: what is there already stays as it is.
#
#   deploy/make-secrets.sh [FOLDER]      (default: deploy/secrets)
#
#   berth-secret       what the processes of the platform know each other by; every machine needs the same
#   berth.env          the URLs of MongoDB and Redis, with their passwords
#   mongodb-password   of the user "berth"
#   mongodb-key        what members of the replica set know each other by
#   redis.conf         the password of Redis
#   operations-token   by which Prometheus reads /metrics from another machine or container
set -eu

folder=${1:-$(dirname "$0")/secrets}

# Nobody but you can look into the folder. In a container, processes that are not root must read the files, so those are open.
umask 022
mkdir -p "$folder"
chmod 700 "$folder"
cd "$folder"

random() {
  head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

keep() {
  [ -s "$1" ] && return
  cat >"$1.new"
  mv "$1.new" "$1"
  echo "Made $folder/$1" >&2
}

head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n' | keep berth-secret
random 32 | keep mongodb-password
head -c 756 /dev/urandom | base64 | keep mongodb-key
echo "requirepass $(random 32)" | keep redis.conf
random 32 | keep operations-token
keep berth.env <<END
BERTH_MONGODB_URL=mongodb://berth:$(cat mongodb-password)@mongodb:27017/berth?authSource=admin&replicaSet=berth
BERTH_REDIS_URL=redis://:$(sed -n 's/^requirepass //p' redis.conf)@redis:6379
END
