# SPDX-License-Identifier: Apache-2.0
#
# `make` prints what there is. Everything is built from the Go module proxy and
# this checkout; nothing is installed outside bin/, .kube/, .demo/ and .cluster/.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Static programs, and one build cache for build, lint, tests and control planes.
export CGO_ENABLED := 0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo v0.0.0-dev)
# The time of all files in images: that of the commit.
CREATED ?= $(shell git log -1 --format=%cI 2>/dev/null || echo 1970-01-01T00:00:00Z)
TAG ?= dev
LDFLAGS := -X kumodo.io/convoy/pkg/version.Version=$(VERSION)

# Rooms with goroutines: their tests run with the race detector, which needs cgo.
RACE := ./pkg/... ./agent/... ./hub/gateway/... ./hub/report/... ./hub/cache/...
GOTEST := go test -timeout 10m
# Packages of e2e at a time: they wait more than they compute.
AT_ONCE ?= 2
stage := @hack/stage.sh

##@ Build

.PHONY: build
build: bin/convoy-hub bin/convoy-agent bin/kubectl-convoy ## Build the three programs, static, into bin/.

# Go decides what is stale, so these are made each time.
.PHONY: bin/convoy-hub bin/convoy-agent bin/kubectl-convoy
bin/convoy-hub:
	@echo "building $@ (minutes, the first time)"
	@go build -ldflags "$(LDFLAGS)" -o $@ ./hub
bin/convoy-agent:
	@echo "building $@ (minutes, the first time)"
	@go build -ldflags "$(LDFLAGS)" -o $@ ./agent
bin/kubectl-convoy:
	@echo "building $@ (minutes, the first time)"
	@go build -ldflags "$(LDFLAGS)" -o $@ ./kubectl-convoy

.PHONY: images
images: ## Build both images, as OCI layouts in bin/images, without a container engine (PLATFORMS=linux/amd64,linux/arm64 TAG=dev).
	@echo "building images into bin/images (minutes, the first time)"
	@go run -C hack/images . --version "$(VERSION)" --tag "$(TAG)" --created "$(CREATED)" $(if $(PLATFORMS),--platforms $(PLATFORMS))

.PHONY: kube
kube: ## Build the control planes that the tests run against, into .kube/bin (minutes, once).
	@echo "building what is missing of the control planes (minutes, once)"
	@go run ./hack/cluster build

.PHONY: generate
generate: ## Write all generated files: deep copies, OpenAPI, rendered manifests.
	@hack/generate.sh

.PHONY: tidy
tidy: ## Tidy go.mod and go.sum.
	@go mod tidy

##@ Check

.PHONY: lint
lint: bin/golangci-lint ## Run the linters of .golangci.yaml.
	@bin/golangci-lint run --allow-parallel-runners $(if $(ROOM),./$(ROOM)/...,./...)

bin/golangci-lint: hack/lint/go.mod
	@go build -C hack/lint -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

.PHONY: fmt
fmt: bin/golangci-lint ## Format the Go files (ROOM=hub/render for one room).
	@bin/golangci-lint fmt $(if $(ROOM),./$(ROOM)/...,./...)

.PHONY: verify
verify: ## Generate again and fail when a generated file or go.mod was not current.
	@hack/verify.sh

.PHONY: test
test: ## All tests: unit, charts and images, then e2e on real control planes.
	$(stage) test-unit $(MAKE) test-unit
	$(stage) test-packaging $(MAKE) test-packaging
	$(stage) test-e2e $(MAKE) test-e2e

.PHONY: test-unit
test-unit: ## Tests that need no control plane; rooms with goroutines under the race detector.
	@CGO_ENABLED=1 $(GOTEST) -race $(RACE)
	@$(GOTEST) $$(go list ./... | grep -v '/convoy/e2e' | grep -vxF "$$(go list $(RACE))")

.PHONY: fuzz
fuzz: ## Give every fuzz test a short run beyond its kept corpus (FUZZTIME=5s each).
	@hack/fuzz.sh $(or $(FUZZTIME),5s)

.PHONY: test-packaging
test-packaging: test-parity ## Charts against Helm, overlays against kustomize; images built twice and read back.
	@go test -C hack/charts -timeout 20m ./...
	@go test -C hack/images -timeout 20m ./...

.PHONY: test-parity
test-parity: bin/helm bin/kustomize ## Our renders against those of `helm template` and `kustomize build`, run beside them (UPDATE=1 writes down what they say; CHARTS=folder compares the charts in it).
	@CONVOY_PARITY_HELM=$(CURDIR)/bin/helm CONVOY_PARITY_UPDATE=$(UPDATE) CONVOY_PARITY_CHARTS=$(CHARTS) go test -count=1 -run HelmTemplate ./hub/render/helm
	@CONVOY_PARITY_KUSTOMIZE=$(CURDIR)/bin/kustomize CONVOY_PARITY_UPDATE=$(UPDATE) go test -count=1 -run KustomizeBuild ./hub/render/kustomize

bin/helm: hack/parity/go.mod
	@go build -C hack/parity -o ../../$@ helm.sh/helm/v3/cmd/helm
	@touch $@

bin/kustomize: hack/parity/go.mod
	@go build -C hack/parity -o ../../$@ sigs.k8s.io/kustomize/kustomize/v5
	@touch $@

.PHONY: test-e2e
test-e2e: build kube ## Tests on whole control planes (RUN=regexp for some, AT_ONCE=1 for one package at a time).
	@go test -timeout 40m -p $(AT_ONCE) $(if $(RUN),-run '$(RUN)') ./e2e/...

.PHONY: test-debian
test-debian: build kube ## Tests behind proxies of Debian and on bad lines, which it installs; needs root (RUN=regexp for some).
	@hack/test-debian.sh $(if $(RUN),-run '$(RUN)')

.PHONY: bench
bench: build kube ## Measure what docs/benchmarks.md states.
	@go run ./e2e/bench $(BENCH)

##@ Try

.PHONY: demo
demo: build kube bin/convoy-demo ## One hub and two edge clusters on this machine, end to end; leaves them running.
	@bin/convoy-demo up

.PHONY: demo-down
demo-down: bin/convoy-demo ## End what `make demo` left running.
	@bin/convoy-demo down

.PHONY: bin/convoy-demo
bin/convoy-demo:
	@go build -o $@ ./e2e/demo

.PHONY: case
case: kube ## Replay a case file on a real control plane: make case FILE=path.yaml (CASE=-manual and other flags).
	@go run ./hack/case $(CASE) $(or $(FILE),$(error FILE is missing: make case FILE=path.yaml))

.PHONY: cluster
cluster: ## Start a control plane for a person: make cluster NAME=x.
	@go run ./hack/cluster up "$(or $(NAME),$(error NAME is missing: make cluster NAME=x))"

.PHONY: cluster-down
cluster-down: ## End it: make cluster-down NAME=x.
	@go run ./hack/cluster down "$(or $(NAME),$(error NAME is missing: make cluster-down NAME=x))"

.PHONY: help
help: ## Print this.
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z0-9-]*:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
