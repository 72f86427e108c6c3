#!/usr/bin/env bash
# Builds the Debian package from build/release and tries it: lintian, and in a chroot install, start, Predict, an upgrade
# under load, remove and purge. The chroot is made once, by mmdebstrap, and kept outside the checkout.
#
#   deploy/test_package.sh [BUILD]
#
# Without root or mmdebstrap, or without a network, only the files of the package are checked, and it says so.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"
source deploy/test_kit.sh

build=${1:-build/release}
[ -n "${FLOE_IN_NAMESPACE:-}" ] || [ "$(id -u)" != 0 ] || exec env FLOE_IN_NAMESPACE=1 unshare --mount "$0" "$@"
work=$(mktemp -d)
server= load=
cleanup() {
  [ -z "$load" ] || kill "$load" 2>/dev/null || true
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  wait 2>/dev/null || true
  umount "$work/chroot/proc" "$work/chroot/dev" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT

# The same programs give the same bytes, whenever they are packed (scripts/release compares two builds).
SOURCE_DATE_EPOCH=$(stat -c %Y "$build/floed")
export SOURCE_DATE_EPOCH
for _ in 1 2; do
  rm -rf "$build/packages"
  (cd "$build" && cpack --config CPackConfig.cmake >"$work/cpack" 2>&1) || { cat "$work/cpack"; fail "cpack"; }
  (cd "$build/packages" && sha256sum -- *.*deb) >>"$work/sums"
done
[ "$(sort -u "$work/sums" | wc -l)" = 2 ] || { cat "$work/sums"; fail "packing twice gives different packages"; }
package=$(ls "$PWD/$build"/packages/floe_*.deb) || fail "no package"
ls "$build"/packages/floe-dbgsym_*.?deb >/dev/null || fail "no package of debug symbols"
! dpkg-deb --ctrl-tarfile "$build"/packages/floe-dbgsym_*.?deb | tar -xO ./md5sums | grep "  /" || fail "a path of this machine"
kib=$(dpkg-deb -f "$package" Installed-Size)
echo "installed: $(awk "BEGIN { printf \"%.1f\", $kib / 1024 }") MiB (mark: 15)"
dpkg-deb -x "$package" "$work/files"
for file in usr/bin/{floed,floectl} usr/libexec/floe/floe-hdf5 etc/floe/floe.yaml usr/lib/systemd/system/floed.{service,socket} \
            usr/lib/{sysusers,tmpfiles}.d/floe.conf usr/share/man/man1/floectl.1.gz usr/share/man/man8/floed.8.gz \
            usr/share/bash-completion/completions/{floed,floectl}; do
  [ -s "$work/files/$file" ] || fail "not in the package: /$file"
done
[ "$(dpkg-deb -f "$package" Version)" = "$("$build/floed" --version | sed -n 's/^floed //p')-1" ] || fail "versions differ"
zcat "$work/files/usr/share/man/man1/floectl.1.gz" | grep 'FLOECTL PREDICT' >/dev/null || fail "floectl(1) lacks predict"
words=$(bash -c "source '$work/files/usr/share/bash-completion/completions/floectl'
  COMP_WORDS=(floectl stat) COMP_CWORD=1; _floectl; echo \"\${COMPREPLY[*]}\"")
[ "$words" = status ] || fail "completion of 'stat' is '$words'"
if command -v lintian >/dev/null; then
  lintian --fail-on error --allow-root "$package" || fail "lintian"
else
  echo "not run: lintian is not installed"
fi

python3 deploy/make_sbom.py --package "$package" --program "$build/floed" --program "$build/floectl" --program "$build/floe-hdf5" --version 1 --time 0 \
  --out "$work/sbom.json" || fail "make_sbom.py"
for name in $(dpkg-deb -f "$package" Depends | sed 's/([^)]*)//g; s/,//g'); do
  dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null | grep -x installed >/dev/null || continue  # a virtual package
  grep -q "\"name\": \"$name\"" "$work/sbom.json" || fail "the SBOM lacks $name"
done

if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap >/dev/null || ! make_chroot; then
  echo "not run: the chroot needs root, mmdebstrap and, the first time, a network; the files alone were checked"
  exit 0
fi

root_dir=$work/chroot
mkdir "$root_dir"
tar -C "$root_dir" -xf "$chroot_tar"
mount -t proc proc "$root_dir/proc" 2>/dev/null || mount --rbind /proc "$root_dir/proc"
mount --bind /dev "$root_dir/dev"
cp "$package" "$root_dir/tmp/floe.deb"
in_root() { chroot "$root_dir" env LC_ALL=C DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
listing() { (cd "$root_dir" && find etc usr var/lib -xdev ! -path 'var/lib/dpkg*' ! -path 'var/lib/apt*' \
  ! -name '*-' ! -name 'ld.so.cache' | sort); }
listing >"$work/before"

port=$(free_port)
address=127.0.0.1:$port
read -r -a start < <(sed -n 's/^ExecStart=//p' "$work/files/usr/lib/systemd/system/floed.service")
floectl() { in_root floectl "$@"; }
ready() {
  until_true 20 floectl status --timeout 5 || { cat "$work/log"; fail "not ready in 20 s"; }
}
predict() {
  floectl predict mnist_beginner input=@/usr/share/floe/mnist/data/digits.npy --target "$address" >"$work/answer" 2>&1
}

began=$(date +%s%N)
in_root apt-get install -y --no-install-recommends /tmp/floe.deb >"$work/apt" 2>&1 || { cat "$work/apt"; fail "apt install"; }
installed=$(date +%s%N)
in_root install -d -o floe -g floe /run/floe  # as RuntimeDirectory= of the unit
python3 deploy/hold_socket.py "$address" chroot --userspec=floe:floe "$root_dir" "${start[@]}" >"$work/log" 2>&1 &
server=$!
ready
now=$(date +%s%N)
echo "apt install to READY: $(((now - began) / 1000000)) ms, of it start to READY $(((now - installed) / 1000000)) ms (mark: 3000)"
predict || { cat "$work/answer"; fail "Predict"; }
floectl reload || fail "reload finds no socket of operators"
! floectl reload --target "$address" >/dev/null 2>&1 || fail "operators' calls are offered to all"
in_root getent passwd floe >/dev/null || fail "no user floe"
[ "$(in_root stat -Lc %U:%a /var/lib/floe/.)" = floe:750 ] || fail "/var/lib/floe is not the user's"

# An upgrade keeps what the operator wrote, and loses no call: clients wait at the socket for the next process.
echo "# an operator's line" >>"$root_dir/etc/floe/floe.yaml"
first=$(pgrep -P "$server")
start_load
in_root dpkg --force-confold -i /tmp/floe.deb >"$work/apt" 2>&1 || { cat "$work/apt"; fail "upgrade"; }
kill -HUP "$server"
restarted() { [ "$(pgrep -P "$server")" != "$first" ]; }
until_true 20 restarted || { cat "$work/log"; fail "floed was not started again"; }
more_calls
stop_load upgrade
grep -q "an operator's line" "$root_dir/etc/floe/floe.yaml" || fail "the upgrade lost the configuration"

kill "$server"; wait "$server" || fail "floed ended with $?"
server=
in_root dpkg -r floe >"$work/apt" 2>&1 || { cat "$work/apt"; fail "remove"; }
[ -e "$root_dir/etc/floe/floe.yaml" ] || fail "remove took the configuration"
[ ! -e "$root_dir/usr/bin/floed" ] || fail "remove left the program"
in_root dpkg -P floe >"$work/apt" 2>&1 || { cat "$work/apt"; fail "purge"; }
listing >"$work/after"
diff "$work/before" "$work/after" || fail "purge left the above"
! in_root getent passwd floe || fail "purge left the user"
echo "install, upgrade, remove, purge: passed"
