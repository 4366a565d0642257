#!/bin/sh
# Runs tests on every supported Python that is found besides the one of .venv, and says which were skipped.
#   every-python.sh kernel    what depends on the interpreter most: virtual time; and one study's tables, equal everywhere
#   every-python.sh all       all tests
set -eu
what=${1:-all}
runs=2
[ "$what" = kernel ] && runs=1
own=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
kept=$(mktemp -d)
trap 'rm -rf "$kept"' EXIT

# Tests of one Python, and the digests of some studies' tables in $kept/tables-VERSION.
check() {
  version=$1
  shift
  ".venv-$version/bin/python" -m pytest -q -m "not full" -p no:cacheprovider "$@" || return 1
  tables_of ".venv-$version" "$version"
}

tables_of() {
  "$1/bin/python" tests/support/same_tables_program.py 0 "$runs" research staged peers >"$kept/tables-$2"
}

found=
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
  PYTHON="$python" sh requirements/setup.sh ".venv-$version"
  found="$found $version"
done
[ -n "$found" ] || exit 0

tables_of .venv "$own" &
# Virtual time waits for nobody, so the Pythons go side by side. Tests that wait in real time have the machine to
# themselves.
for version in $found; do
  if [ "$what" = kernel ]; then
    # The last -m applies: of the full counts, those in which interpreters differ.
    { check "$version" tests/clocks >"$kept/said-$version" 2>&1 &&
      check "$version" -m full -k "every_supported_python or sweep-2-3" tests/clocks >>"$kept/said-$version" 2>&1 &&
      : >"$kept/passed-$version"; } &
  else
    echo "every-python: python$version"
    check "$version" -n 2 --dist loadfile tests && : >"$kept/passed-$version"
  fi
done
wait

failed=
for version in $found; do
  if [ "$what" = kernel ]; then
    echo "every-python: python$version"
    cat "$kept/said-$version"
  fi
  if [ ! -e "$kept/passed-$version" ]; then
    echo "every-python: tests failed on python$version" >&2
    failed=yes
  elif ! cmp -s "$kept/tables-$version" "$kept/tables-$own"; then
    echo "every-python: studies have other tables on Python $version than on $own" >&2
    failed=yes
  else
    echo "every-python: studies have equal tables on Python $own and $version"
  fi
done
[ -z "$failed" ]
