#!/bin/sh
# Runs the tests on every supported Python that is found besides the one of .venv; says which were skipped.
set -eu
own=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
for version in 3.11 3.12 3.13; do
  [ "$version" = "$own" ] && continue
  if ! command -v "python$version" >/dev/null 2>&1 || ! "python$version" -c 'import venv' >/dev/null 2>&1; then
    echo "every-python: python$version not found, skipped"
    continue
  fi
  echo "every-python: python$version"
  PYTHON="python$version" sh requirements/setup.sh ".venv-$version"
  ".venv-$version/bin/python" -m pytest -q -m "not full" -p no:cacheprovider tests
done
