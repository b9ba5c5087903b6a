# Two commands on a fresh machine: `make demo` and `make test`. Both set up what is missing and are idempotent.
SHELL := /bin/bash
.DEFAULT_GOAL := help
BUILD  ?= build
PREFIX ?= /usr/local
PYTHON := .venv/bin/python
JOBS   ?= $(shell nproc)
# Optimized, with the line numbers of stacks; what a debugger needs besides (-g) takes an eighth longer to build.
OPTIMIZE ?= -O2 -g1 -DNDEBUG
# What is set up and configured: all; of `make demo`, less.
SETUP :=
TESTS := ON

.PHONY: help
help: ## Show this help
	@awk -F':.*## ' '/^[a-z -]+:.*## /{n = split($$1, names, " "); for (i = 1; i <= n; ++i) printf "  make %-12s %s\n", names[i], $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing: distribution packages, .venv with torch
	@scripts/setup.sh $(SETUP)

.PHONY: configure
configure: setup
	@mkdir -p $(BUILD)
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$(OPTIMIZE)" -DTRAPLINE_PYTHON="$(CURDIR)/$(PYTHON)" -DTRAPLINE_TESTS=$(TESTS) $(CMAKE_ARGS) >$(BUILD)/configure.log 2>&1 \
	  || { tail -20 $(BUILD)/configure.log; echo "trapline: configure: failed: see $(BUILD)/configure.log" >&2; exit 2; }
	@grep -E '^-- trapline: ' $(BUILD)/configure.log || true

.PHONY: build
build: configure ## Build everything that this machine can build
	@cmake --build $(BUILD) -j $(JOBS)

.PHONY: demo
demo: SETUP = demo
demo: TESTS = OFF
demo: configure ## Build the program, then diagnose a real failing one
	@cmake --build $(BUILD) -j $(JOBS) --target trapline_capi
	@cmake --build $(BUILD) -j $(JOBS) --target demo
	@scripts/demo.sh $(BUILD)

.PHONY: test
test: build ## Build and run all tests
	@scripts/test.sh $(BUILD)

.PHONY: test-long
test-long: build ## The same, over many more random programs and samples
	@TRAPLINE_LONG=1 scripts/test.sh $(BUILD)

.PHONY: bench
bench: ## Speed, as ratios against named peers in one run
	@$(MAKE) --no-print-directory build CMAKE_ARGS=-DTRAPLINE_BENCH=ON
	@scripts/bench.sh $(BUILD)

.PHONY: gpu-proof
gpu-proof: ## Prove on this machine's NVIDIA GPU what the tests prove without one; writes docs/proof/
	@scripts/gpu_proof.sh $(BUILD)

.PHONY: test-cuda
test-cuda: build ## Under PyTorch's unmodified CUDA build without a GPU: 5 GB, a quarter of an hour; docs/cuda-build.md
	@scripts/cuda_venv.sh
	@scripts/test_cuda.sh $(BUILD) $(SUITES)

.PHONY: test-torches
test-torches: build ## Over other releases of PyTorch, which are fetched (1 GB each): docs/adapters.md
	@scripts/test_torches.sh $(BUILD) $(TORCHES)

.PHONY: bundle
bundle: ## Put the libraries that the build links beside it, to run it on a machine that lacks them
	@scripts/bundle.sh $(BUILD)

.PHONY: docs
docs: build ## Write the pages of docs/ that are made from tables
	@scripts/docs.sh $(BUILD)

.PHONY: site
site: setup ## The documentation as a site with a search, in BUILD/site
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build -q --strict -d "$(CURDIR)/$(BUILD)/site"
	@echo "$(BUILD)/site/index.html"

.PHONY: pictures
pictures: build ## Draw the pictures of docs/pictures again
	@$(PYTHON) scripts/pictures --build $(BUILD)

.PHONY: lint
lint: ## Format and static checks
	@scripts/setup.sh lint
	@scripts/lint.sh $(BUILD)

.PHONY: format
format: ## Format all sources in place
	@git ls-files '*.cpp' '*.hpp' '*.h' '*.c' | xargs clang-format-14 -i
	@$(PYTHON) -m ruff format python tests examples bench scripts packaging

.PHONY: asan tsan
asan tsan: setup ## Build and run the C++ tests under sanitizers
	@cmake --preset $@ >/dev/null && cmake --build --preset $@ -j $(JOBS) && ctest --preset $@

.PHONY: guard-asan guard-tsan
guard-asan: setup ## The guard inside Python under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/sanitize_guard.sh address
guard-tsan: setup ## The guard inside Python under ThreadSanitizer
	@scripts/sanitize_guard.sh thread

.PHONY: install
install: build ## Install to PREFIX (default /usr/local)
	@cmake --install $(BUILD) --prefix "$(PREFIX)"

.PHONY: deb
deb: ## Make a Debian package of this machine's build, in dist/
	@scripts/setup.sh wheel
	@cmake -S . -B $(BUILD)-deb -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$(OPTIMIZE)" -DTRAPLINE_TESTS=OFF -DTRAPLINE_PYTHON=none >/dev/null
	@cmake --build $(BUILD)-deb -j $(JOBS)
	@cd $(BUILD)-deb && cpack -G DEB >/dev/null && rm -rf ../dist/_CPack_Packages && ls ../dist/*.deb

.PHONY: clean
clean: ## Remove the build tree (keeps .venv)
	@rm -rf $(BUILD)
