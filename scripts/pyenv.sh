#!/usr/bin/env bash
# Prints the path of a Python that has the packages of REQUIREMENTS, by default tests/python/requirements.txt, making a
# virtual environment the first time. The environment is cached outside the checkout under a hash of that file.
#
#   scripts/pyenv.sh [--offline] [REQUIREMENTS]     --offline: exit 1 where it would have to be made
#
# FLOE_PYENV_DIR says where environments live; default $XDG_CACHE_HOME/floe or ~/.cache/floe.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
offline=
[ "${1:-}" != --offline ] || { offline=1; shift; }
requirements=${1:-$root/tests/python/requirements.txt}

base=/usr/bin/python3
[ -x "$base" ] || base=$(command -v python3) || { echo "needs Python: apt-get install python3-venv" >&2; exit 1; }
version=$("$base" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
key=$( (echo "$version"; cat "$requirements") | sha256sum | cut -c1-12)
folder=${FLOE_PYENV_DIR:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/floe}
mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ] || folder=$root/build
venv=$folder/pyenv-$key
python=$venv/bin/python

if [ ! -e "$venv/complete" ]; then
  if [ -n "$offline" ]; then
    echo "no Python environment at $venv, and --offline forbids making it" >&2
    exit 1
  fi
  mkdir -p "$folder"
  exec 9>"$venv.lock"
  flock 9  # two callers at once: the second finds it made
  if [ ! -e "$venv/complete" ]; then
    echo "making the Python environment $venv (once)" >&2
    rm -rf "$venv"
    "$base" -m venv "$venv" >&2
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$requirements" >&2
    touch "$venv/complete"
  fi
fi
echo "$python"
