#!/usr/bin/env bash
# run.sh NAME FILE...: runs test files with pytest in the environment of scripts/pyenv.sh, as ctest's test NAME.
# Exit status 77 (skipped) where FLOE_OFFLINE forbids making the environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
name=$1
shift
code=0
python=$(../../scripts/pyenv.sh ${FLOE_OFFLINE:+--offline}) || code=$?
if [ "$code" != 0 ]; then
  echo "skipped: there is no Python environment"
  [ -n "${FLOE_OFFLINE:-}" ] && exit 77
  exit 1
fi
report=()
[ -z "${FLOE_TEST_RESULTS:-}" ] || report=(--junitxml "$FLOE_TEST_RESULTS/${name}_tests.xml")
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=-1 PYTHONDONTWRITEBYTECODE=1
exec "$python" -m pytest -q -rs -p no:cacheprovider "${report[@]}" "$@"
