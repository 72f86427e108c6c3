#!/bin/sh
# fix_debug_package.sh FILE.ddeb: makes the paths of its md5sums those of the installed files.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/control"
ar p "$1" control.tar.gz | tar -xz -C "$work/control"
sed -i 's|  /.*/usr/lib/debug/|  usr/lib/debug/|' "$work/control/md5sums"
tar -C "$work/control" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-$(date +%s)}" \
  -cf - . | gzip -9n >"$work/control.tar.gz"
ar rD "$1" "$work/control.tar.gz"
