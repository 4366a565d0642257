#!/bin/sh
# Runs tests on every supported Python that is found besides the one of .venv, and says which were skipped.
#   every-python.sh kernel    what depends on the interpreter most: virtual time; and one study's tables, equal everywhere
#   every-python.sh all       all tests
set -eu
what=${1:-all}
own=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
tables="tests/batch/same_tables_program.py 0"
expected=
for version in 3.11 3.12 3.13; do
  [ "$version" = "$own" ] && continue
  python=
  # On the path, or where pyenv keeps versions that are not.
  for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c 'import venv' >/dev/null 2>&1; then
      python=$candidate
    fi
  done
  if [ -z "$python" ]; then
    echo "every-python: python$version not found, skipped"
    continue
  fi
  echo "every-python: python$version"
  PYTHON="$python" sh requirements/setup.sh ".venv-$version"
  if [ "$what" = kernel ]; then
    ".venv-$version/bin/python" -m pytest -q -m "not full" -n 2 --dist loadfile -p no:cacheprovider tests/clocks
  else
    ".venv-$version/bin/python" -m pytest -q -m "not full" -n 2 --dist loadfile -p no:cacheprovider tests
  fi
  [ -n "$expected" ] || expected=$(.venv/bin/python $tables)
  found=$(".venv-$version/bin/python" $tables)
  if [ "$found" != "$expected" ]; then
    echo "every-python: one study has other tables on Python $version ($found) than on $own ($expected)" >&2
    exit 1
  fi
  echo "every-python: one study has equal tables on Python $own and $version"
done
