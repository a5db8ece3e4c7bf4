# Every task of the project; `make` lists them. Nothing here asks a question or needs a file outside the clone
# but the cache: $(CACHE) holds tools and control-plane binaries, each built once.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/stanchion
TOOLS := $(CACHE)/tools

TARGET  := $(or $(CARGO_TARGET_DIR),target)
SHIPPED := $(TARGET)/release/stanchion

# Roughly what a first build takes on two cores, so that a person who waits knows for what. The demo and the tests were measured
# on a calm machine; the release is an estimate.
DEMO_TAKES    := 4 to 12 minutes
TEST_TAKES    := 10 to 20 minutes
RELEASE_TAKES := about 20 minutes

CARGO_DENY    := 0.20.2
CARGO_MACHETE := 0.9.2
KUBERNETES    := $(shell sed -n 's|^require k8s.io/kubernetes v||p' tools/control-plane/kubernetes/go.mod)
CONTROL_PLANE := $(CACHE)/control-plane/$(KUBERNETES)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing to build and test (PostgreSQL's server, a C compiler)
	@tools/setup

.PHONY: demo
demo: setup ## Try it without a cluster, in this terminal (ARGS=--once ends when all is ready)
	@tools/announce $(TARGET)/debug/stanchion "compiling about 370 crates, $(DEMO_TAKES) on two cores; then the demo starts by itself"
	cargo run --locked --all-features --bin stanchion -- sandbox $(ARGS)

.PHONY: demo-recording
demo-recording: setup ## Record the demo of the README anew, from a real run (needs kubectl)
	cargo build --locked --all-features --bin stanchion
	tools/record-demo $${CARGO_TARGET_DIR:-target}/debug/stanchion sandbox --once

# One cluster for all test binaries of a run. `--all-features` on both sides of it: nothing is compiled twice.
TEST := cargo run --locked --all-features --bin test-bed -- cargo test --no-fail-fast --locked --all-features

# TESTS="a b" runs those tests alone, by their whole names.
ONLY = $(if $(TESTS),-- --exact $(TESTS))

# The suites that a cluster makes a difference to: those that name one.
ON_CLUSTER = $(foreach manifest,$(wildcard $(addsuffix /Cargo.toml,$(shell \
	grep -rlE 'Cluster::|STANCHION_TEST_CLUSTER' crates/*/tests | cut -d/ -f1-2 | sort -u))),\
	-p $(shell sed -n 's/^name = "\(.*\)"/\1/p;T;q' $(manifest)))

.PHONY: test
test: setup ## Run every test, on the embedded API server (ARGS="-p stanchion-kernel lease" narrows it down)
	@tools/announce $(TARGET)/debug/test-bed "compiling about 390 crates and the tests, $(TEST_TAKES) on two cores; then the tests run by themselves"
	$(TEST) $(ARGS) $(ONLY)

.PHONY: test-real
test-real: setup assets ## Run the suites that use a cluster against a real control plane (ARGS as above)
	STANCHION_TEST_CLUSTER=real $(TEST) $(or $(ARGS),$(ON_CLUSTER) --test it) $(ONLY)

.PHONY: simulate
simulate: ## Run the kernel and its controllers in a simulated world (ARGS="--kind kernel --seeds 100000", or --seed 7)
	cargo run --locked --all-features --bin stanchion-simulate -- $(ARGS)

.PHONY: fuzz
fuzz: ## Change specs at random, from their schemas, and compare the way back and a fresh object (ARGS="--changes 20")
	cargo run --locked --all-features --bin stanchion-simulate -- --fuzz $(ARGS)

# What users of a Supabase rely on must hold on the oldest and on the newest PostgreSQL; elsewhere a test takes one of them.
.PHONY: test-versions
test-versions: setup ## Run the checks of SupabaseProject on PostgreSQL 15 and on 18
	status=0; for version in 15 18; do STANCHION_TEST_POSTGRES=$$version \
		$(TEST) -p stanchion-supabase --test it acceptance $(ONLY) || status=1; done; exit $$status

# The binaries of $KUBEBUILDER_ASSETS are used when it is set, as envtest does it.
.PHONY: assets
assets: $(if $(KUBEBUILDER_ASSETS),,control-plane)

.PHONY: lint
lint: setup $(TOOLS)/cargo-deny@$(CARGO_DENY) $(TOOLS)/cargo-machete@$(CARGO_MACHETE) ## Format, clippy, dependencies, documents
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
	$(TOOLS)/bin/cargo-deny --log-level warn check bans licenses sources
	$(TOOLS)/bin/cargo-machete
	tools/check-docs
	@git ls-files '*.rs' | xargs wc -l | awk '$$1 > 400 && $$2 != "total" { print "warning: " $$2 " has " $$1 " lines: is it about one thing?" }'

# The one way to the program that is shipped; deploy/Dockerfile has the same words, and the benches measure what it makes.
.PHONY: release
release: setup ## Build the program as it is shipped: target/release/stanchion
	@tools/announce $(SHIPPED) "compiling about 370 crates for size, and the whole program once more to link it: $(RELEASE_TAKES) on two cores"
	cargo build --release --locked --all-features --bin stanchion

# The program as it is shipped; the one that measures it may be slow.
.PHONY: bench
bench: release assets ## Measure what 1,000 objects cost, to make and when idle (ARGS="--objects 100 --seconds 10" for a short run)
	for bench in idle users; do STANCHION_TEST_CLUSTER=real \
		cargo run --locked --all-features --bin stanchion-bench-$$bench -- \
		--binary $(SHIPPED) $(ARGS); done

.PHONY: bench-supabase
bench-supabase: release assets ## Measure what 100 Supabase projects cost (ARGS="--projects 1000" for more)
	STANCHION_TEST_CLUSTER=real cargo run --locked --all-features --bin stanchion-bench-supabase -- \
		--binary $(SHIPPED) $(ARGS)

.PHONY: bench-policy
bench-policy: release assets ## Measure what policies cost, and beside pgroles where it is installed (see bench/policy/src/operator.rs)
	STANCHION_TEST_CLUSTER=real cargo run --locked --all-features --bin stanchion-bench-policy -- \
		--binary $(SHIPPED) $(ARGS)

.PHONY: bench-roles
bench-roles: release ## Measure the role engine against the floor and, where it is installed, pgroles (see bench/roles/bench.py)
	bench/roles/bench.py --ours $(SHIPPED) $(ARGS)

.PHONY: bench-sandbox
bench-sandbox: release assets ## Measure the sandbox beside a real control plane (ARGS="--objects 1000 --writes 1000" for a short run)
	cargo build --release --locked --all-features --bin stanchion-bench-sandbox
	STANCHION_TEST_CLUSTER=real $(TARGET)/release/stanchion-bench-sandbox \
		--binary $(SHIPPED) $(ARGS)

.PHONY: bench-attacks
bench-attacks: $(SHIPPED) setup assets ## Measure what a hostile tenant, server or client costs the others (ARGS="--only endless-rows" for one)
	STANCHION_TEST_CLUSTER=real cargo run --locked --all-features --bin stanchion-bench-attacks -- \
		--binary $(SHIPPED) $(ARGS)

.PHONY: generate
generate: ## Write what is made from the types: deploy/ (CRDs, RBAC) and docs/reference/
	cargo run --quiet --locked --all-features --bin stanchion -- generate .

.PHONY: control-plane
control-plane: ## Build kube-apiserver, etcd and the rest of a real control plane into the cache, once (minutes)
	tools/control-plane/build $(CONTROL_PLANE)

.PHONY: audit
audit: $(TOOLS)/cargo-deny@$(CARGO_DENY) ## Look for security advisories and yanked crates (skipped where their database cannot be fetched)
	@tools/audit $(TOOLS)/bin/cargo-deny

# A debug build is enough for a linter and takes a minute instead of ten. The empty file named after the version
# says that it is installed, so that no registry is asked again.
$(TOOLS)/cargo-%: | setup
	env -u CARGO_TARGET_DIR cargo install --quiet --locked --debug --root $(TOOLS) $(@F)
	touch $@

.PHONY: docs
docs: ## Build the book into target/book (needs mdbook; the pages read well without)
	@command -v mdbook > /dev/null || { echo "mdbook is missing: cargo install --locked mdbook" >&2; exit 1; }
	mdbook build docs
