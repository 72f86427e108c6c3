#!/usr/bin/env bash
# Builds the wheel of floe-client. Downloads nothing once scripts/pyenv.sh has made the environment of requirements.txt.
#
#   clients/python/build.sh [FOLDER]     FOLDER: where the wheel goes; default build/wheels
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m "${1:-$here/../../build/wheels}")
python=$("$here/../../scripts/pyenv.sh" ${FLOE_OFFLINE:+--offline} "$here/requirements.txt")

work=$(mktemp -d)  # setuptools writes beside its sources
trap 'rm -rf "$work"' EXIT
cp -r "$here/pyproject.toml" "$here/README.md" "$here/src" "$work/"
find "$work" -name __pycache__ -prune -exec rm -r {} +
rm -f "$out"/floe_client-*.whl
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}
"$python" -m pip --disable-pip-version-check wheel --quiet --no-index --no-deps --no-build-isolation -w "$out" "$work"
echo "$out"/floe_client-*.whl
