#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command as a named stage and prints how many seconds it took:
#   hack/stage.sh NAME COMMAND [ARG...]
set -uo pipefail
name=$1
shift
echo "--- $name"
SECONDS=0
"$@"
code=$?
if [ "$code" -eq 0 ]; then
  echo "--- $name: ok in ${SECONDS} s"
else
  echo "--- $name: FAILED after ${SECONDS} s (exit code $code)"
fi
exit "$code"
