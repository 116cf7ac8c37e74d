#!/bin/sh
# Creates the secrets of a deployment. Existing files are not changed.
#
#   deploy/make-secrets.sh [FOLDER]      (default: deploy/secrets)
#
#   berth-secret       authenticates the processes of the platform to each other; the same on every machine
#   berth.env          the URLs of MongoDB and Redis, with their passwords
#   mongodb-password   of the user "berth"
#   mongodb-key        authenticates the members of the replica set to each other
#   redis.conf         the password of Redis
#   operations-token   with which Prometheus reads /metrics from another machine or container
set -eu

folder=${1:-$(dirname "$0")/secrets}

# Only its owner can enter the folder. The files are readable for all, because processes in containers do not run as their owner.
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
