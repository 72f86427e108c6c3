#!/bin/sh
# fix_package.sh FILE: makes the paths of a package's md5sums those of the installed files, and Installed-Size what Debian
# counts: the KiB of each file, and one for each link or folder.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/control"
ar p "$1" control.tar.gz | tar -xz -C "$work/control"
sed -i 's|  /.*/usr/lib/debug/|  usr/lib/debug/|' "$work/control/md5sums"
kib=$(dpkg-deb --fsys-tarfile "$1" | tar -tv | awk '{ kib += /^-/ ? int(($3 + 1023) / 1024) : 1 } END { print kib }')
sed -i "s/^Installed-Size: .*/Installed-Size: $kib/" "$work/control/control"
tar -C "$work/control" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-$(date +%s)}" \
  -cf - . | gzip -9n >"$work/control.tar.gz"
ar rD "$1" "$work/control.tar.gz"
