#!/usr/bin/env bash
# Tries the Debian package under a booted systemd, in a container of systemd-nspawn: install, the units, a restart, an
# upgrade, a crash and a hang under load, reload, remove and purge. deploy/test_package.sh packs before.
#
#   deploy/test_systemd.sh [BUILD]
#
# Exit status 77, with the reason as the last line: the machine boots no container.
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"
source deploy/test_kit.sh

build=${1:-build/release}
package=$(ls "$PWD/$build"/packages/floe_*.deb) || fail "no package: run deploy/test_package.sh"
skip() { echo "needs root, systemd-nspawn and a kernel that boots systemd in a container: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "not root"
for program in mmdebstrap systemd-nspawn nsenter; do
  command -v $program >/dev/null || skip "no $program"
done

work=$(mktemp -d)
container= load=
cleanup() {
  rm -f "$work/go"
  [ -z "$load" ] || kill "$load" 2>/dev/null || true
  [ -z "$container" ] || kill "$container" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT
make_chroot || skip "no chroot could be made"

root_dir=$work/root
mkdir "$root_dir"
tar -C "$root_dir" -xf "$chroot_tar"
cp "$package" "$root_dir/var/tmp/floe.deb"
SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn --quiet --boot --register=no --keep-unit --private-network \
  --machine="floe-$$" --console=pipe -D "$root_dir" </dev/null >"$work/boot" 2>&1 &
container=$!

inside() {
  nsenter --target "$leader" --mount --uts --ipc --net --pid --cgroup \
    env -i LC_ALL=C DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
booted() {
  leader=$(pgrep -P "$container" | head -1) && inside systemctl is-system-running | grep -E 'running|degraded' >/dev/null
}
until_true 60 booted || { tail -3 "$work/boot"; skip "systemd did not come up"; }
echo "booted: systemd $(inside systemctl --version | sed -n '1s/[^ ]* \([0-9]*\).*/\1/p')"

service() { inside systemctl show -P "$1" floed.service; }
journal() { inside journalctl --no-pager -u floed.service "$@"; }
trap 'journal -n 40 2>/dev/null || true' ERR
predict() { inside floectl predict mnist_beginner input=@/usr/share/floe/mnist/data/digits.npy >"$work/answer" 2>&1; }
restarted() { [ "$(service MainPID)" != 0 ] && [ "$(service MainPID)" != "$process" ] && [ "$(service ActiveState)" = active ]; }

began=$(date +%s%N)
inside apt-get install -y --no-install-recommends /var/tmp/floe.deb >"$work/apt" 2>&1 || { cat "$work/apt"; journal; fail "apt install"; }
echo "apt install to READY: $((($(date +%s%N) - began) / 1000000)) ms (mark: 3000)"
for unit in floed.socket floed.service; do
  inside systemctl is-active --quiet $unit || { journal; fail "$unit is not active after the installation"; }
  inside systemctl is-enabled --quiet $unit || fail "$unit is not enabled"
done
predict || { cat "$work/answer"; journal; fail "Predict"; }
inside systemctl status --no-pager floed.service | grep 'Status: "Serving' >/dev/null || fail "no status line"
! journal | grep -E ' (error|warn) ' || fail "the journal has the above"

[ "$(inside stat -c %U:%G:%a /run/floe/admin.sock)" = floe:floe:770 ] || fail "the socket of operators is another's"
inside floectl status >/dev/null || fail "floectl status"
inside floectl reload || fail "floectl reload"

start_load
process=$(service MainPID)
inside systemctl restart floed.service || fail "restart"
restarted || fail "the restart left the old process"
more_calls
process=$(service MainPID)
inside dpkg --force-confold -i /var/tmp/floe.deb >"$work/apt" 2>&1 || { cat "$work/apt"; fail "upgrade"; }
restarted || fail "the upgrade left the old process"
more_calls
stop_load "restart and upgrade"

# Calls of a process that is killed are lost; those that come later wait for the next one.
process=$(service MainPID)
inside systemctl kill --kill-who=main --signal=KILL floed.service
until_true 20 restarted || fail "floed was not started again after a crash"
predict || { cat "$work/answer"; fail "Predict after a crash"; }
inside mkdir -p /run/systemd/system/floed.service.d
inside sh -c 'printf "[Service]\nWatchdogSec=2s\n" >/run/systemd/system/floed.service.d/test.conf'
inside systemctl daemon-reload && inside systemctl restart floed.service
process=$(service MainPID)
inside systemctl kill --kill-who=main --signal=STOP floed.service
until_true 30 restarted || fail "floed was not started again after it hung"
predict || { cat "$work/answer"; fail "Predict after a hang"; }
echo "crash and hang: started again"

process=$(service MainPID)
inside sed -i 's/^models:/models:\n  - {name: second, base_path: \/usr\/share\/floe\/mnist\/models\/mnist_beginner}/' /etc/floe/floe.yaml
inside systemctl reload floed.service || fail "reload"
until_true 20 inside floectl predict second input=@/usr/share/floe/mnist/data/digits.npy || { journal -n 20; fail "the reload brought no model"; }
[ "$(service MainPID)" = "$process" ] || fail "the reload started another process"

inside dpkg -r floe >"$work/apt" 2>&1 || { cat "$work/apt"; fail "remove"; }
for unit in floed.socket floed.service; do
  ! inside systemctl is-active --quiet $unit || fail "$unit is active after removal"
done
inside dpkg -P floe >"$work/apt" 2>&1 || { cat "$work/apt"; fail "purge"; }
! inside getent passwd floe || fail "purge left the user"
[ "$(inside systemctl list-unit-files 'floed*' --no-legend | wc -l)" = 0 ] || fail "purge left units"
[ ! -e "$root_dir/var/lib/private/floe" ] || fail "purge left /var/lib/private/floe"
echo "install, restart, upgrade, crash, hang, reload, remove, purge under systemd: passed"
