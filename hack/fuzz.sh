#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs each fuzz test for a while, one after another:
#   hack/fuzz.sh DURATION [PACKAGE...]
# What fails is kept under testdata/fuzz of its package, to be committed with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:?how long, as in 5s}
shift
packages=("$@")
if [ "${#packages[@]}" -eq 0 ]; then
  mapfile -t packages < <(git grep -lE '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u)
fi
for package in "${packages[@]}"; do
  for name in $(cat "$package"/*_test.go | grep -oE '^func Fuzz[A-Za-z0-9_]*' | cut -d' ' -f2 | sort -u); do
    echo "fuzz $package $name for $duration"
    go test -run '^$' -fuzz "^$name\$" -fuzztime "$duration" -fuzzminimizetime 10x -parallel 2 "./$package"
  done
done
