#!/usr/bin/env bash
# Installs the Debian packages that floe needs. Does nothing when all are there.
#
#   scripts/install_deps.sh [build|all|ci|full]
#
#   build   to compile and run floe (the default)
#   all     also to check it
#   ci      also with a browser
#   full    also the clients, proxies and scanners that scripts/test.sh --ci --full asks
set -euo pipefail

build_packages=(
  ca-certificates ccache cmake g++ libabsl-dev libbenchmark-dev libboost-dev libcli11-dev libeigen3-dev libfarmhash-dev libgmock-dev libgrpc++-dev
  libgtest-dev libhdf5-dev libhwy-dev libicu-dev libjemalloc-dev libjpeg62-turbo-dev libnghttp2-dev libopenblas0-pthread libpng-dev
  libprotobuf-dev libre2-dev libsimdjson-dev libsnappy-dev libspdlog-dev libssl-dev libsystemd-dev
  libxxhash-dev libyaml-cpp-dev libzip-dev lld ninja-build nlohmann-json3-dev pkg-config protobuf-compiler protobuf-compiler-grpc zlib1g-dev
)
check_packages=(
  buildah clang clang-format clang-tidy curl dpkg-dev file git haproxy libclang-rt-dev libcurl4-openssl-dev lintian llvm mmdebstrap nginx-light openssl procps prometheus
  python3 python3-venv systemd systemd-container
)
ci_packages=(chromium)
foreign_packages=(
  default-jdk-headless golang-go golang-google-grpc-dev libgrpc-java libnetty-java libperfmark-java nghttp2-client ruby-grpc sslscan testssl.sh
)

case "${1:-build}" in
  build) wanted=("${build_packages[@]}") ;;
  all) wanted=("${build_packages[@]}" "${check_packages[@]}") ;;
  ci) wanted=("${build_packages[@]}" "${check_packages[@]}" "${ci_packages[@]}") ;;
  full) wanted=("${build_packages[@]}" "${check_packages[@]}" "${ci_packages[@]}" "${foreign_packages[@]}") ;;
  *) echo "usage: $0 [build|all|ci|full]" >&2; exit 2 ;;
esac

missing=()
for package in "${wanted[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "needs root to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt=("${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 -qq)
"${apt[@]}" update
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null

# Tests start these themselves; as services of this machine nobody asked for them.
for service in haproxy nginx prometheus; do
  [ -d /run/systemd/system ] && [[ " ${missing[*]} " == *" $service"* ]] || continue
  "${as_root[@]}" systemctl disable --now --quiet "$service"
done
