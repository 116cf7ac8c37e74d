#!/bin/sh
# Builds the init of containers with a key for both architectures. With `--check` it builds them somewhere else and compares them
# with what is committed.
#
# The compiler is Zig's, of one version, from PyPI. It carries the C library of every target, so the same source gives the same
# bytes on every machine. Needs Python 3 with venv; the first build takes a minute, since it compiles that library.
set -eu
zig_version=0.17.1
folder=$(cd "$(dirname "$0")" && pwd)
python=${XDG_CACHE_HOME:-$HOME/.cache}/berth-zig-$zig_version

if [ ! -e "$python/complete" ]; then
  python3 -m venv --clear "$python"
  "$python/bin/pip" install --quiet --disable-pip-version-check "ziglang==$zig_version"
  touch "$python/complete"
fi

target=$folder
if [ "${1-}" = --check ]; then
  target=$(mktemp -d)
  trap 'rm -r "$target"' EXIT
fi

# From its own folder: no path of this machine must stand in a binary.
cd "$folder"
for pair in x86_64:amd64 aarch64:arm64; do
  "$python/bin/python" -m ziglang cc -target "${pair%%:*}-linux-musl" -std=c23 -Os -static -s -Wall -Wextra -Werror \
    -o "$target/init-${pair##*:}" init.c
done

if [ "$target" != "$folder" ]; then
  for build in init-amd64 init-arm64; do
    cmp "$target/$build" "$build" || { echo "$build is not what init.c gives: run worker/init/build.sh" >&2; exit 1; }
  done
fi
