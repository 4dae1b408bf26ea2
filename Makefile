# Everything a developer or CI does here. `make` alone lists the targets.
GO       ?= go
FUZZTIME ?= 30s
CHAOS_FOR ?= 10m
PKG      ?= ./...
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.revision=$(REVISION)
LINT     := bin/golangci-lint
FUZZER   := bin/schemathesis-4.32.5/bin/st

# Java servers are heavy: packages that start many stand below test/ and run one at a time, two tests at once.
UNIT      = $$($(GO) list ./... | grep -v /test/)
BROKERS   = $$($(GO) list ./test/...)
# Of the packages below test/ these alone do something without brokers that could race, and these have benchmarks: what is not linked costs nothing.
RACED     = $(if $(filter ./...,$(PKG)),$(UNIT) ./test/kafkatest ./test/bench,$(PKG))
BENCHED   = $(if $(filter ./...,$(PKG)),$$(grep -rl --include='*_test.go' --exclude-dir=node_modules '^func Benchmark' . | xargs -n1 dirname | sort -u),$(PKG))

.DEFAULT_GOAL := help
.PHONY: help build ui ui-check demo test test-short test-long chaos kafka kafka-if-possible lint fmt race fuzz api-fuzz api-fuzzer bench bench-kafka dashboard chart-lint image clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the programs into bin/
	@mkdir -p bin
	@for dir in $(patsubst %/main.go,%,$(wildcard cmd/*/main.go)); do \
		name=causeway; [ $$dir = cmd/causeway ] || name=causeway-$$(basename $$dir); \
		echo "$(GO) build -o bin/$$name ./$$dir"; \
		CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/$$name ./$$dir || exit 1; \
	done

# The page's sources are TypeScript. What they give is checked in, so that only who changes them needs Node.
ui: ui/node_modules ## build the page into api/web (needs node and npm)
	cd ui && npm run --silent build

ui-check: ui/node_modules ## check that the page in api/web is what its sources give
	cd ui && npm run --silent check

ui/node_modules: ui/package-lock.json
	cd ui && npm ci --no-audit --no-fund
	@touch ui/node_modules

demo: build ## mirror between two embedded clusters, with a page at the address that it prints (Ctrl-C ends it)
	bin/causeway demo

test: kafka-if-possible ## run all tests, those on real brokers included (needs java, mvn for the first time)
	@status=0; \
	$(GO) test -shuffle=on -timeout 20m $(UNIT) || status=1; \
	$(GO) test -shuffle=on -timeout 20m -p 1 -parallel 2 $(BROKERS) || status=1; \
	exit $$status

test-short: ## run the quick tests: no real brokers, little randomness
	$(GO) test -short -shuffle=on -timeout 5m $(PKG)

test-long: kafka-if-possible ## run all tests at full length
	CAUSEWAY_LONG=1 $(GO) test -shuffle=on -count=1 -timeout 2h -p 1 $(PKG)

# Another run with the same seed has the same schedule; what meets what is up to the machine.
chaos: kafka-if-possible ## run a cluster under random faults for CHAOS_FOR (10m), of the seed CHAOS_SEED if it is set; logs stay in bin/chaos
	@mkdir -p bin/chaos
	CHAOS_FOR=$(CHAOS_FOR) $(GO) test -run '^TestChaos$$' -v -count=1 -timeout 24h -artifacts -outputdir $(CURDIR)/bin/chaos ./test/chaos

kafka: ## fetch the Kafka and Helix jars that tests run, from Maven Central (CAUSEWAY_KAFKA_HOME, default in the user's cache)
	$(GO) run ./test/cmd/kafkalibs

# Says loudly, once, what will be missing.
kafka-if-possible:
	@if command -v java >/dev/null && command -v mvn >/dev/null; then \
		$(GO) run ./test/cmd/kafkalibs >/dev/null || [ "$$CAUSEWAY_REQUIRE_KAFKA" != 1 ]; \
	elif [ "$$CAUSEWAY_REQUIRE_KAFKA" = 1 ]; then \
		echo "java and mvn are required (CAUSEWAY_REQUIRE_KAFKA=1) and not both installed" >&2; exit 1; \
	else \
		echo "!!! java or mvn is missing: TESTS ON REAL KAFKA BROKERS MAY BE SKIPPED !!!" >&2; \
	fi

# The linter's cache belongs to this checkout: what another one left in a common cache names files by paths that the exclusions don't know.
lint: export GOLANGCI_LINT_CACHE = $(CURDIR)/bin/lint-cache
lint: $(LINT) ## check format, style and layers
	$(LINT) run ./...

fmt: $(LINT) ## format all Go files
	$(LINT) fmt

# Built once: a run through `go tool` would link it anew each time.
$(LINT): tools/go.mod tools/go.sum
	cd tools && $(GO) build -trimpath -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

race: ## run the quick tests with the race detector
	GORACE=atexit_sleep_ms=50 CGO_ENABLED=1 $(GO) test -race -short -count=1 -timeout 15m $(RACED)

fuzz: ## run every fuzz test for FUZZTIME (30s)
	@set -e; for pkg in $$($(GO) list $(PKG)); do \
		for name in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$name"; $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

# Python's package manager fetches it, so it is no part of test.
api-fuzz: api-fuzzer kafka-if-possible ## send requests made of the API's description to live processes (needs python3; CAUSEWAY_LONG=1: 100 an operation)
	CAUSEWAY_SCHEMATHESIS=$(CURDIR)/$(FUZZER) $(GO) test -count=1 -timeout 30m ./test/apifuzz

api-fuzzer: $(FUZZER)

$(FUZZER):
	python3 -m venv $(dir $(FUZZER))..
	$(dir $(FUZZER))pip install -q --disable-pip-version-check schemathesis==4.32.5

bench: ## run every benchmark once, to see that it runs
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 10m $(BENCHED)

bench-kafka: kafka ## measure side by side on real brokers
	$(GO) run ./test/bench

dashboard: ## write the dashboard for Grafana anew from its source
	$(GO) run ./deploy/grafana > deploy/grafana/causeway.json.new
	mv deploy/grafana/causeway.json.new deploy/grafana/causeway.json

# Helm's packages take minutes to compile the first time: they are in a module of their own, and this is no part of test.
chart-lint: ## lint the Helm chart, render it, and hold the result against its goldens and the types of Kubernetes
	cd test/chart && $(GO) test -shuffle=on ./...

image: ## build the container image causeway:VERSION (needs docker)
	docker build --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) -t causeway:$(VERSION) .

clean: ## remove what make made, but not the Kafka jars
	rm -rf bin
	$(GO) clean -testcache
