#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests behind the build tag "debian": they need programs of Debian
# (proxies, registries) beside the link and the sources. Says so when there are none.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t packages < <(git ls-files -z '*_test.go' | xargs -0r grep -lE '^//go:build .*\bdebian\b' |
  xargs -r -n1 dirname | sort -u | sed 's|^|./|')
if [ "${#packages[@]}" -eq 0 ]; then
  echo "no test of this build needs a program of Debian beyond git"
  exit 0
fi
go test -tags debian -p 1 -timeout 20m "${packages[@]}"
