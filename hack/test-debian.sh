#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests behind the build tag "debian": they need proxies, balancers and
# an inspector of Debian beside the link, and its registry for renders. Installs what is missing, and fails
# where a part cannot be had. Needs Go, root, network namespaces and tun devices.
#   hack/test-debian.sh [ARGUMENT OF go test...]
set -euo pipefail
cd "$(dirname "$0")/.."
export DEBIAN_FRONTEND=noninteractive CGO_ENABLED=0

die() {
  echo "test-debian: $*" >&2
  exit 1
}

[ "$(id -u)" -eq 0 ] || die "root is needed, for network namespaces and to install programs; this is $(id -un)"
command -v go >/dev/null || die "go is missing"
command -v apt-get >/dev/null || die "apt-get is missing: these tests install their programs from Debian"

# wanted says for each package how to see that it is there.
wanted() {
  cat <<'LIST'
git command -v git
openssl command -v openssl
util-linux command -v nsenter unshare
iproute2 command -v ip tc
squid-openssl squid -v | grep -q -- --with-openssl
nginx-light command -v nginx
haproxy command -v haproxy
mitmproxy command -v mitmdump
docker-registry command -v docker-registry
LIST
}

missing() {
  local package check
  while read -r package check; do
    bash -c "$check" >/dev/null 2>&1 || echo "$package"
  done < <(wanted)
}

# install gets packages without letting their services start.
install() {
  local policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap "rm -f '$policy'" EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 0755 "$policy"
  fi
  apt-get update -q && apt-get install -qy --no-install-recommends "$@"
}

export PATH="$PATH:/usr/sbin:/sbin"
mapfile -t packages < <(missing)
if [ "${#packages[@]}" -gt 0 ]; then
  echo "installing ${packages[*]}"
  SECONDS=0
  log=$(mktemp)
  install "${packages[@]}" >"$log" 2>&1 || { tail -n 30 "$log" >&2; die "apt-get could not install ${packages[*]}"; }
  rm -f "$log"
  echo "installed in ${SECONDS} s"
  mapfile -t packages < <(missing)
  [ "${#packages[@]}" -eq 0 ] || die "still missing after their installation: ${packages[*]}"
fi

unshare --net true 2>/dev/null || die "network namespaces are refused here (unshare --net): a privileged container or a virtual machine is needed"
unshare --net ip tuntap add mode tun name probe 2>/dev/null || die "tun devices are refused here (/dev/net/tun): a privileged container or a virtual machine is needed"

mapfile -t tests < <(git ls-files -z '*_test.go' | xargs -0r grep -lE '^//go:build .*\bdebian\b' |
  xargs -r -n1 dirname | sort -u | sed 's|^|./|')
[ "${#tests[@]}" -gt 0 ] || die "no test has the build tag debian"
go test -tags debian -count=1 -p 1 -timeout 20m "$@" "${tests[@]}"
