# Every task of the project; `make` lists them. No task is interactive. The only files outside of the clone are in the
# cache: $(CACHE) contains tools and control-plane binaries, each built once.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/stanchion
TOOLS := $(CACHE)/tools

TARGET  := $(or $(CARGO_TARGET_DIR),target)
SHIPPED := $(TARGET)/release/stanchion

# Approximate duration of a first build on two cores, for the messages below. The demo and the tests were measured on an
# idle machine, the release (10.1 minutes of CPU time) beside other builds.
DEMO_TAKES    := 4 to 12 minutes
TEST_TAKES    := 10 to 20 minutes
RELEASE_TAKES := about 10 minutes

CARGO_DENY    := 0.20.2
CARGO_MACHETE := 0.9.2
CARGO_CYCLONEDX := 0.5.9
HELM3         := 3.22.0
KUBERNETES    := $(shell sed -n 's|^require k8s.io/kubernetes v||p' tools/control-plane/kubernetes/go.mod)
CONTROL_PLANE := $(CACHE)/control-plane/$(KUBERNETES)
# The programs of $KUBEBUILDER_ASSETS are used when it is set, as envtest does it, unless the command line names a version. The
# version must be passed on: the cache may contain several, and the tests would use the newest.
ASSETS := $(if $(filter command,$(origin KUBERNETES)),,$(KUBEBUILDER_ASSETS))
ON_REAL := STANCHION_TEST_CLUSTER=real KUBEBUILDER_ASSETS=$(or $(ASSETS),$(CONTROL_PLANE))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install missing build and test dependencies (the PostgreSQL server, a C compiler)
	@tools/setup

.PHONY: demo
demo: setup ## Run the demo without a cluster, in this terminal (ARGS=--once exits when everything is ready)
	@tools/announce $(TARGET)/debug/stanchion "compiling about 370 crates, $(DEMO_TAKES) on two cores; then the demo starts by itself"
	cargo run --locked --all-features --bin stanchion -- sandbox $(ARGS)

.PHONY: demo-page
demo-page: setup ## Run the demo in the background, open its page with curl, and end it
	tools/open-demo

.PHONY: demo-recording
demo-recording: setup ## Record the demo in the README again, from a real run (needs kubectl)
	cargo build --locked --all-features --bin stanchion
	tools/record-demo $${CARGO_TARGET_DIR:-target}/debug/stanchion sandbox --once

# One cluster for all test binaries of a run. `--all-features` is on both sides, so that nothing is compiled twice.
TEST := cargo run --locked --all-features --bin test-bed -- cargo test --no-fail-fast --locked --all-features

# TESTS="a b" runs only those tests, by their exact names.
ONLY = $(if $(TESTS),-- --exact $(TESTS))

# The suites that use a cluster.
ON_CLUSTER = $(foreach manifest,$(wildcard $(addsuffix /Cargo.toml,$(shell \
	grep -rlE 'Cluster::|TestNamespace::|STANCHION_TEST_CLUSTER' crates/*/tests testing/*/tests | cut -d/ -f1-2 | sort -u))),\
	-p $(shell sed -n 's/^name = "\(.*\)"/\1/p;T;q' $(manifest)))

.PHONY: test
test: setup ## Run every test, on the embedded API server (ARGS="-p stanchion-kernel lease" narrows it down)
	@tools/announce $(TARGET)/debug/test-bed "compiling about 390 crates and the tests, $(TEST_TAKES) on two cores; then the tests run by themselves"
	$(TEST) $(ARGS) $(ONLY)

.PHONY: test-real
test-real: setup assets ## Run the suites that use a cluster against a real control plane (ARGS as above)
	$(ON_REAL) $(TEST) $(or $(ARGS),$(ON_CLUSTER) --test it) $(ONLY)

.PHONY: test-helm3
test-helm3: setup assets $(TOOLS)/helm@$(HELM3) ## Run the tests of the chart with Helm 3, against a real control plane
	$(ON_REAL) STANCHION_HELM=$(TOOLS)/bin/helm-$(HELM3) $(TEST) -p stanchion --test it chart:: $(ARGS) $(ONLY)

# Chromium and its driver are several hundred megabytes: only these targets install them.
.PHONY: browser
browser:
	@command -v chromium > /dev/null && command -v chromedriver > /dev/null || tools/apt-install chromium chromium-driver

# The whole workspace has the features that `make test` has compiled; with -p stanchion-ui, dependencies are compiled again.
.PHONY: test-ui
test-ui: setup browser ## Run the tests of the page in a real browser (installs Chromium if it is missing)
	$(TEST) --workspace --test it $(or $(ARGS),$(if $(TESTS),,browser::)) $(ONLY)

.PHONY: screenshots
screenshots: setup browser ## Take the pictures of the page in docs/images again, from a running demo
	cargo build --locked --all-features --bin stanchion
	cargo run --locked --all-features --bin stanchion-bench-ui -- --screenshots docs/images --binary $(TARGET)/debug/stanchion

# The files of test servers are kept in memory if 4 GiB are free there, as test-bed does it.
IN_MEMORY = $(shell test "$$(df --output=avail /dev/shm 2> /dev/null | tail -n 1)" -gt 4194304 2> /dev/null && echo TMPDIR=$${TMPDIR:-/dev/shm})

# What a schedule runs is optimised a little: it then takes half of the time. The tests do not need that, and would compile
# longer. Cargo keeps both, and compiles dependencies once.
OPTIMISED := $(foreach crate,api gitlab kernel manifest policy postgres roles simulate supabase toy user,\
	--config profile.dev.package.stanchion-$(crate).opt-level=1)
SIMULATE := cargo run --locked --all-features $(OPTIMISED) --bin stanchion-simulate --

.PHONY: simulate
simulate: setup ## Run the kernel and its controllers in a simulation (ARGS="--kind kernel --seeds 100000", or --seed 7)
	$(IN_MEMORY) $(SIMULATE) $(ARGS)

# With STANCHION_TEST_CLUSTER=real, on a real control plane.
.PHONY: fuzz
fuzz: setup $(if $(filter real,$(STANCHION_TEST_CLUSTER)),assets) ## Change specs randomly, from their schemas, and compare the result with a reverted and with a new object (ARGS="--kind user --changes 20")
	$(IN_MEMORY) $(if $(filter real,$(STANCHION_TEST_CLUSTER)),$(ON_REAL)) $(SIMULATE) --fuzz $(ARGS)

# The checks of SupabaseProject run on the oldest and on the newest PostgreSQL; other tests use one version each.
.PHONY: test-versions
test-versions: setup ## Run the checks of SupabaseProject on PostgreSQL 15 and on 18
	status=0; for version in 15 18; do STANCHION_TEST_POSTGRES=$$version \
		$(TEST) -p stanchion-supabase --test it acceptance $(ONLY) || status=1; done; exit $$status

.PHONY: assets
assets: $(if $(ASSETS),,control-plane)

.PHONY: lint
lint: setup $(TOOLS)/cargo-deny@$(CARGO_DENY) $(TOOLS)/cargo-machete@$(CARGO_MACHETE) ## Format, clippy, dependencies, documents
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
	$(TOOLS)/bin/cargo-deny --log-level warn check bans licenses sources
	$(TOOLS)/bin/cargo-machete
	tools/check-docs
	tools/check-house --self-test
	tools/check-house
	tools/check-pins
	@git ls-files '*.rs' | xargs wc -l | awk '$$1 > 400 && $$2 != "total" { print "warning: " $$2 " has " $$1 " lines: is it about one thing?" }'

# The only release build: deploy/Dockerfile uses the same command, and the benchmarks measure its result.
.PHONY: release
release: setup ## Build the release binary: target/release/stanchion
	@tools/announce $(SHIPPED) "compiling about 370 crates for size, and the whole program once more to link it: $(RELEASE_TAKES) on two cores"
	cargo build --release --locked --all-features --bin stanchion

# The tool writes a file beside the manifest of every program of the workspace. The time of the commit makes it reproducible.
.PHONY: sbom
sbom: setup $(TOOLS)/cargo-cyclonedx@$(CARGO_CYCLONEDX) ## Write the SBOM of the release binary (CycloneDX): target/stanchion.cdx.json
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(TOOLS)/bin/cargo-cyclonedx cyclonedx --manifest-path crates/stanchion/Cargo.toml \
		--format json --all-features --describe binaries --quiet
	mkdir -p $(TARGET) && mv crates/stanchion/stanchion_bin.cdx.json $(TARGET)/stanchion.cdx.json
	rm -f {bench,crates,testing}/*/*_bin.cdx.json

# The release binary; the benchmark program itself may be a debug build.
.PHONY: bench
bench: release assets ## Measure the cost of 1,000 objects, on creation and when idle (ARGS="--objects 100 --seconds 10" for a short run)
	for bench in idle users; do $(ON_REAL) \
		cargo run --locked --all-features --bin stanchion-bench-$$bench -- \
		--binary $(SHIPPED) $(ARGS); done

.PHONY: bench-supabase
bench-supabase: release assets ## Measure the cost of 100 Supabase projects (ARGS="--projects 1000" for more)
	$(ON_REAL) cargo run --locked --all-features --bin stanchion-bench-supabase -- \
		--binary $(SHIPPED) $(ARGS)

.PHONY: bench-policy
bench-policy: release assets ## Measure the cost of policies, compared with pgroles if it is installed (see bench/policy/src/operator.rs)
	$(ON_REAL) cargo run --locked --all-features --bin stanchion-bench-policy -- \
		--binary $(SHIPPED) $(ARGS)

.PHONY: bench-roles
bench-roles: release ## Measure the role engine, compared with the floor and with pgroles if it is installed (see bench/roles/bench.py)
	bench/roles/bench.py --ours $(SHIPPED) $(ARGS)

.PHONY: bench-sandbox
bench-sandbox: release assets ## Measure the sandbox, compared with a real control plane (ARGS="--objects 1000 --writes 1000" for a short run)
	cargo build --release --locked --all-features --bin stanchion-bench-sandbox
	$(ON_REAL) $(TARGET)/release/stanchion-bench-sandbox \
		--binary $(SHIPPED) $(ARGS)

.PHONY: bench-ui
bench-ui: setup browser ## Measure the page with 1,000 objects in a real browser (ARGS="--objects 100" for fewer; a debug build)
	cargo run --locked --all-features --bin stanchion-bench-ui -- $(ARGS)

.PHONY: bench-attacks
bench-attacks: $(SHIPPED) setup assets ## Measure the effect of a hostile tenant, server or client on others (ARGS="--only endless-rows" for one)
	$(ON_REAL) cargo run --locked --all-features --bin stanchion-bench-attacks -- \
		--binary $(SHIPPED) $(ARGS)

# Another binary: make bench-faults SHIPPED=target/debug/stanchion
.PHONY: bench-faults
bench-faults: $(SHIPPED) setup assets ## Measure takeovers of three replicas, and what dead servers cost others (ARGS="--rounds 3 --only takeover" for less)
	$(ON_REAL) cargo run --locked --all-features --bin stanchion-bench-faults -- \
		--binary $(SHIPPED) $(ARGS)

.PHONY: generate
generate: ## Write the generated files: deploy/ and charts/ (CRDs, RBAC), docs/reference/
	cargo run --quiet --locked --all-features --bin stanchion -- generate .

.PHONY: control-plane
control-plane: ## Build kube-apiserver, etcd and the other programs of a control plane into the cache, once (minutes)
	tools/control-plane/build $(CONTROL_PLANE) $(KUBERNETES)

.PHONY: audit
audit: $(TOOLS)/cargo-deny@$(CARGO_DENY) ## Check for security advisories and yanked crates (skipped if their database cannot be fetched)
	@tools/audit $(TOOLS)/bin/cargo-deny

# A debug build is enough for a linter and takes a minute instead of ten. The empty file named after the version marks it
# as installed, so that the registry is not queried again.
$(TOOLS)/cargo-%: | setup
	env -u CARGO_TARGET_DIR cargo install --quiet --locked --debug --root $(TOOLS) $(@F)
	touch $@

$(TOOLS)/helm@%:
	tools/control-plane/helm3 $(TOOLS)/bin/helm-$* $*
	touch $@

.PHONY: docs
docs: ## Build the documentation into target/book (needs mdbook; the pages are readable without)
	@command -v mdbook > /dev/null || { echo "mdbook is missing: cargo install --locked mdbook" >&2; exit 1; }
	tools/book-source $(TARGET)/book-source
	mdbook build $(TARGET)/book-source --dest-dir $(abspath target/book)
