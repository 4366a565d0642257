#!/bin/sh
# Makes the environment named by $1 ready: a Python of 3.11-3.13, the fast installer, the pinned set, the project itself.
set -eu
venv=$1
supported='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
python=
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
  if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$supported" 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "setup: no Python 3.11, 3.12 or 3.13 found; install one, or name it: make setup PYTHON=/path/to/python3.12" >&2
  exit 1
fi
# An environment made by another Python version is built anew.
if [ -x "$venv/bin/python" ] && ! "$venv/bin/python" -c "$supported" 2>/dev/null; then
  rm -rf "$venv"
fi
if [ ! -x "$venv/bin/python" ]; then
  echo "setup: creating $venv with $("$python" --version)"
  # --without-pip: works where the distribution ships venv without ensurepip; pip installs from outside.
  "$python" -m venv --without-pip "$venv"
fi
if ! "$venv/bin/uv" --version >/dev/null 2>&1; then
  "$python" -m pip --python "$venv/bin/python" --disable-pip-version-check --quiet \
    install --require-hashes -r requirements/bootstrap.txt
fi
VIRTUAL_ENV="$(pwd)/$venv"
export VIRTUAL_ENV
# The certificates of the system, so that it works behind a proxy that has its own.
export UV_SYSTEM_CERTS=true
"$venv/bin/uv" pip install --quiet --require-hashes -r requirements/lock.txt
"$venv/bin/uv" pip install --quiet --no-deps --no-build-isolation --editable .
echo "setup: $venv is ready"
