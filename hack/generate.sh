#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes all generated files: deep copies of the API types, the OpenAPI definitions
# that the API server serves, and the manifests. Called by `make generate`.
set -euo pipefail
cd "$(dirname "$0")/.."

header=hack/boilerplate/boilerplate.go.txt
tool() { go tool -modfile=hack/tools/go.mod "$@"; }

tool deepcopy-gen --go-header-file "$header" --output-file zz_generated.deepcopy.go \
  ./api/core/v1alpha1 ./api/source/v1alpha1 ./api/extensions/v1alpha1

mkdir -p hub/apiserver/openapi
tool openapi-gen --go-header-file "$header" \
  --output-dir hub/apiserver/openapi --output-pkg kumodo.io/convoy/hub/apiserver/openapi \
  --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
  --report-filename /dev/null \
  ./api/core/v1alpha1 ./api/source/v1alpha1 ./api/extensions/v1alpha1 \
  k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version

# manifests/hub is what the hub's chart renders, manifests/agent what `kubectl convoy
# join` prints from the agent's, with example values.
go test ./charts -run '^TestManifestsOfTheHubAreWhatTheChartRenders$' -count 1 -update >/dev/null
go test ./kubectl-convoy/install -run '^TestManifestsOfTheAgentAreWhatThePluginPrints$' -count 1 -update >/dev/null
