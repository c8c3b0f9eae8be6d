#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when a generated file or go.mod is not what its source makes of it.
# Works on a tree with changes too: it compares contents before and after.
set -euo pipefail
cd "$(dirname "$0")/.."

generated() {
  git ls-files -z --cached --others --exclude-standard -- \
    '*zz_generated*' 'manifests/*' | sort -z | xargs -0r sha256sum
}

clean=$(git status --porcelain)
before=$(generated)
hack/generate.sh
after=$(generated)

code=0
if [ "$before" != "$after" ]; then
  echo "verify: these generated files were not current; commit what 'make generate' wrote:" >&2
  diff <(echo "$before") <(echo "$after") | sed -n 's/^[<>] [0-9a-f]*  /  /p' | sort -u >&2
  code=1
fi
if [ -z "$clean" ] && [ -n "$(git status --porcelain)" ]; then
  echo "verify: the tree was clean before and is not now:" >&2
  git status --porcelain >&2
  code=1
fi
if ! go mod tidy -diff >&2; then
  echo "verify: go.mod is not tidy; run 'make tidy'" >&2
  code=1
fi
exit "$code"
