#!/bin/sh
# Builds the programs that containers see as `/.berth`, for both architectures: their init, and the port helper. With `--check` it
# builds them in another folder and compares them with the committed ones.
#
# The compiler is Zig's, of one version, from PyPI. It carries the C library of every target, so the same source gives the same
# bytes on every machine. Needs Python 3 with venv; the first build takes a minute, since it compiles that library.
set -eu
zig_version=0.17.1
worker=$(cd "$(dirname "$0")" && pwd)
python=${XDG_CACHE_HOME:-$HOME/.cache}/berth-zig-$zig_version

if [ ! -e "$python/complete" ]; then
  python3 -m venv --clear "$python"
  "$python/bin/pip" install --quiet --disable-pip-version-check "ziglang==$zig_version"
  touch "$python/complete"
fi

target=$worker
if [ "${1-}" = --check ]; then
  target=$(mktemp -d)
  trap 'rm -r "$target"' EXIT
fi

for name in init port-helper; do
  # From its own folder: no path of this machine must stand in a binary.
  cd "$worker/$name"
  mkdir -p "$target/$name"
  for pair in x86_64:amd64 aarch64:arm64; do
    build=$name/$name-${pair##*:}
    "$python/bin/python" -m ziglang cc -target "${pair%%:*}-linux-musl" -std=c23 -Os -static -s -Wall -Wextra -Werror \
      -o "$target/$build" "$name.c"
    cmp "$target/$build" "$worker/$build" || { echo "$build is out of date with $name.c: run worker/build-programs.sh" >&2; exit 1; }
  done
done
