# `make` or `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Where the tests and demos find etcd, kube-apiserver, kube-controller-manager and
# kubectl. Set KUBEBUILDER_ASSETS to use others; nothing is built then.
ASSETS := $(abspath $(or $(KUBEBUILDER_ASSETS),bin/k8s))

# What every test and demo runs with.
WITH_ASSETS := KUBEBUILDER_ASSETS="$(ASSETS)"

# The race detector needs cgo, even where a Go installation turns it off.
RACE := CGO_ENABLED=1

# The packages below this one need a control plane; all others do not.
TEST_PACKAGE := github.com/fencedlease/fencedlease/test

##@ Try it

.PHONY: demo
demo: control-plane build bin/demo ## Show on a real API server what FencedLease does
	$(WITH_ASSETS) bin/demo

.PHONY: up
up: control-plane build bin/fencedlease-up ## Start a local control plane with FencedLease in it, and leave it running
	$(WITH_ASSETS) bin/fencedlease-up start

.PHONY: down
down: bin/fencedlease-up ## Stop what `make up` started
	$(WITH_ASSETS) bin/fencedlease-up stop

##@ Check

.PHONY: test
test: ## Everything: control plane, generated files, lint, unit and integration tests
	@for step in control-plane verify lint unit integration; do \
		hack/step.sh "$$step" $(MAKE) "$$step"; \
	done

.PHONY: verify
verify: bin/tools/controller-gen bin/tools/helm-docs ## Fail if generated files are out of date
	@hack/verify-generated.sh $(MAKE) generate

.PHONY: lint
lint: bin/tools/golangci-lint bin/tools/helm ## Lint the code, the API types by the Kubernetes API conventions, and the chart
	@status=0; \
	echo "lint: all Go code"; \
	bin/tools/golangci-lint run --allow-parallel-runners ./... || status=1; \
	(cd hack/pictures && ../../bin/tools/golangci-lint run --allow-parallel-runners --config ../../.golangci.yml ./...) || status=1; \
	(cd test/node && ../../bin/tools/golangci-lint run --allow-parallel-runners --config ../../.golangci.yml ./...) || status=1; \
	echo "lint: API types, by the Kubernetes API conventions"; \
	bin/tools/golangci-lint run --allow-parallel-runners --config .golangci-kal.yml ./api/... || status=1; \
	bin/tools/helm lint --strict --quiet charts/fencedlease || status=1; \
	exit $$status

.PHONY: unit
unit: gcc ## Tests that need nothing but Go, with the race detector
	packages=$$(go list ./... | grep -Ev '^$(TEST_PACKAGE)(/|$$)'); \
	$(RACE) $(WITH_ASSETS) go test -race $$packages
	go test -C hack/pictures ./...

.PHONY: integration
integration: gcc node iproute postgresql mariadb curl control-plane bin/tools/helm bin/tools/promtool bin/manager-race bin/kubectl-fence-race ## Tests against a real control plane, with the race detector
	export $(RACE) $(WITH_ASSETS) \
		FENCEDLEASE_MANAGER="$(abspath bin/manager-race)" FENCEDLEASE_PLUGIN="$(abspath bin/kubectl-fence-race)"; \
	packages=$$(go list ./test/... | grep -Ev '/test/(blackhole|load|leadership|e2e)$$'); \
	go test -race -count=1 -p 2 -timeout 40m $$packages; \
	(cd test/node && go test -race -count=1 -timeout 10m .); \
	echo "integration: under load, with webhooks that never answer, and leaders that are paused, with the figures"; \
	go test -race -count=1 -p 1 -v -timeout 40m ./test/leadership ./test/load ./test/blackhole

.PHONY: stores
stores: gcc postgresql mariadb curl ## The fences of databases under 100,000 writes on each, with cut connections; about 5 minutes
	$(RACE) FENCEDLEASE_STORE_WRITES=100000 go test -race -count=1 -v -timeout 40m -run 'TestContention' ./test/stores

.PHONY: e2e
e2e: iproute control-plane bin/tools/helm bin/manager bin/kubectl-fence bin/test-node ## Install the chart on a node, upgrade it under load, uninstall it; as root, on Linux
	$(WITH_ASSETS) go test -count=1 -v -timeout 20m ./test/e2e

.PHONY: pictures
pictures: bin/tools/prometheus bin/tools/pictures ## The same, with a Prometheus that reads along: docs/dashboard is drawn from it
	FENCEDLEASE_PICTURES="$(abspath docs/dashboard)" $(MAKE) e2e

##@ Build

.PHONY: build
build: bin/manager bin/kubectl-fence ## Build the manager and the kubectl plugin into bin

.PHONY: generate
generate: bin/tools/controller-gen bin/tools/helm-docs ## Generate deepcopy code and the CRD from the API types, and the chart's share of config/, and the page of metrics
	bin/tools/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	bin/tools/controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	go run ./hack/chart
	go run ./hack/metrics
	bin/tools/helm-docs --chart-search-root=charts --sort-values-order=file --log-level=warning

.PHONY: control-plane
control-plane: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl into bin/k8s
	@hack/build-control-plane.sh

.PHONY: tools
tools: bin/tools/controller-gen bin/tools/golangci-lint bin/tools/helm bin/tools/helm-docs bin/tools/promtool bin/tools/prometheus bin/tools/pictures ## Build the pinned tools into bin/tools

.PHONY: clean
clean: ## Stop what `make up` started, and delete everything that was built
	@if [[ -x bin/fencedlease-up ]]; then $(WITH_ASSETS) bin/fencedlease-up stop; fi
	rm -rf bin

.PHONY: help
help: ## Show this
	@awk 'BEGIN { FS = ":.*## "; print "Usage: make TARGET" } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { sub(/:.*/, "", $$1); printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The programs of this module. Go knows itself whether there is anything to do.

.PHONY: bin/manager
bin/manager:
	CGO_ENABLED=0 go build -o $@ .

.PHONY: bin/manager-race
bin/manager-race: gcc
	$(RACE) go build -race -o $@ .

.PHONY: bin/kubectl-fence
bin/kubectl-fence:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o $@ ./cmd/kubectl-fence

.PHONY: bin/kubectl-fence-race
bin/kubectl-fence-race: gcc
	$(RACE) go build -race -o $@ ./cmd/kubectl-fence

.PHONY: bin/demo
bin/demo:
	CGO_ENABLED=0 go build -o $@ ./test/demo

# Not bin/up: that is the directory in which it keeps its files.
.PHONY: bin/fencedlease-up
bin/fencedlease-up:
	CGO_ENABLED=0 go build -o $@ ./test/up

# A module of its own: what it needs is no dependency of FencedLease.
.PHONY: bin/test-node
bin/test-node:
	cd test/node && CGO_ENABLED=0 go build -o ../../$@ .

.PHONY: gcc
gcc:
	@cc=($$(go env CC)); hack/ensure-program.sh "$${cc[0]}" "race detector" gcc libc6-dev

.PHONY: iproute
iproute:
	@hack/ensure-program.sh ip "network namespaces of tests" iproute2

# Servers for tests, which the tests start themselves. The programs of PostgreSQL are not
# in the PATH on Debian; those of MariaDB not in everyone's. The package of PostgreSQL would
# start a server of its own, but in runlevel 1 (invoke-rc.d).
.PHONY: postgresql
postgresql:
	@PATH="$$PATH:$$(printf '%s:' /usr/lib/postgresql/*/bin)"; \
	RUNLEVEL=1 hack/ensure-program.sh initdb "tests of stores" postgresql

.PHONY: mariadb
mariadb:
	@PATH="$$PATH:/usr/sbin" hack/ensure-program.sh mariadbd "tests of stores" mariadb-server-core mariadb-client-core

.PHONY: curl
curl:
	@hack/ensure-program.sh curl "tests of stores" curl

.PHONY: node
node:
	@hack/ensure-program.sh npm "example in JavaScript" nodejs npm

# The pinned tools, each rebuilt when the module that pins it changes.

bin/tools/controller-gen: hack/tools/go.mod hack/tools/go.sum
	@hack/build-tool.sh controller-gen tools sigs.k8s.io/controller-tools/cmd/controller-gen

# golangci-lint with the kube-api-linter compiled in.
bin/tools/golangci-lint: hack/tools/go.mod hack/tools/go.sum
	@hack/build-tool.sh golangci-lint tools sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter

bin/tools/helm: hack/helm/go.mod hack/helm/go.sum
	@hack/build-tool.sh helm helm helm.sh/helm/v4/cmd/helm

# It writes the README of the chart.
bin/tools/helm-docs: hack/helm-docs/go.mod hack/helm-docs/go.sum
	@hack/build-tool.sh helm-docs helm-docs github.com/norwoodj/helm-docs/cmd/helm-docs

# promtool tests the alerts of the chart; prometheus reads metrics of which there are to
# be pictures. Without the clients of all service discoveries but those of files.
bin/tools/promtool bin/tools/prometheus: hack/prometheus/go.mod hack/prometheus/go.sum
	@GOFLAGS="$${GOFLAGS:-} -tags=remove_all_sd" hack/build-tool.sh $(@F) prometheus github.com/prometheus/prometheus/cmd/$(@F)

# It draws the dashboard of the chart.
bin/tools/pictures: $(wildcard hack/pictures/*.go) hack/pictures/go.mod hack/pictures/go.sum
	@hack/build-tool.sh pictures pictures .
