# The project's verbs; `make` alone lists them. Each makes what it needs first: .venv is filled in
# layers (.make/setup_venv.py), and a second run installs nothing and needs no network.

.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# The first Python that runs and is new enough; `make PYTHON=/path/to/python` overrides.
PYTHON = $(shell for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
LAYERS = @python="$(PYTHON)"; \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "Python 3.11 or newer is needed: install it, or say make PYTHON=/path/to/python" >&2; \
	exit 1; }; "$$python" .make/setup_venv.py

# Java comes from .venv/java where the machine has none that Spark can use.
BIN = .venv/bin
ENV = if [ -x .venv/java/bin/java ]; then export JAVA_HOME="$(CURDIR)/.venv/java"; fi; \
	export SPARK_LOCAL_IP=127.0.0.1 PYSPARK_PYTHON="$(CURDIR)/$(BIN)/python";
PYTEST = $(ENV) $(BIN)/python -m pytest

PACKAGES = $(patsubst %/__init__.py,%,$(wildcard $(addsuffix /__init__.py,kraftlog storage \
	metadata_log quorum brokers spark_connector chaos kraftctl)))
TYPED = $(PACKAGES) tests $(wildcard setup.py pyspark_kraftlog.py benchmarks/*.py .make/*.py)
# As modules, else benchmarks/storage.py would stand in for the package that it measures.
BENCHMARKS = $(patsubst %.py,%,$(notdir $(filter-out %/__init__.py %/harness.py %/scripted.py,\
	$(sort $(wildcard benchmarks/*.py)))))

missing = @echo "make $@: $(1)" >&2; exit 1

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

.PHONY: setup
setup: ## make .venv and install the layers core, spark and dev (a download of about 600 MB)
	$(LAYERS) core spark dev

.PHONY: core
core: ## make .venv with what kraftctl and the demo need (a download of about 25 MB)
	$(LAYERS) core

.PHONY: demo
demo: ## start a local cluster, watch it fail over, read it back by Spark (SPARK=0: without Spark)
	$(LAYERS) core $(if $(filter 0,$(SPARK)),,spark)
	@$(ENV) $(BIN)/python -m kraftctl demo $(if $(filter 0,$(SPARK)),,--spark)

.PHONY: picture
picture: core ## docs/demo.svg anew, from what a real run of the demo prints
	@$(BIN)/python .make/picture.py

.PHONY: test
test: setup ## all tests but soak
	@$(PYTEST) -n auto --maxprocesses=4 --dist loadgroup

.PHONY: test-fast
test-fast: setup ## the tests to run while editing: no slow ones, fewer examples
	@HYPOTHESIS_PROFILE=fast; export HYPOTHESIS_PROFILE; \
	$(PYTEST) -n auto --maxprocesses=4 -m "not slow and not soak"

.PHONY: check
check: setup ## lint, format, types, imports, generated stubs, tidiness; writes nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy --strict $(TYPED)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python .make/proto.py --check
	$(BIN)/python -m pytest -q tests/tidy

.PHONY: check-native
check-native: setup ## the C codec under the address and undefined-behaviour sanitizers
	@$(BIN)/python tests/native/check_native.py; status=$$?; \
	if [ $$status -eq 77 ]; then echo "make $@: SKIPPED, see above" >&2; fi; \
	[ $$status -eq 0 ] || [ $$status -eq 77 ]

.PHONY: fix
fix: setup ## repair what can be repaired: lint, format, generated stubs
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python .make/proto.py

.PHONY: proto
proto: setup ## make kraftlog/rpc/ anew from proto/
	$(BIN)/python .make/proto.py

.PHONY: sim
sim: core ## simulate quorum, controller, brokers (SEEDS=200 SEED=1 KIND= TRACE=1 WITHOUT=loss,cuts)
	@$(BIN)/python -m chaos.sim run --seeds $(or $(SEEDS),200) --seed $(or $(SEED),1) \
	$(if $(KIND),--kind $(KIND)) $(if $(TRACE),--trace) $(if $(WITHOUT),--without $(WITHOUT))

.PHONY: mutants
mutants: core ## break the code on purpose; the simulator must notice (ONLY=part of a name)
	@$(BIN)/python -m chaos.sim mutants $(if $(ONLY),--only "$(ONLY)")

.PHONY: soak
soak: setup ## the long tests, with many more examples
	@HYPOTHESIS_PROFILE=deep; export HYPOTHESIS_PROFILE; $(PYTEST) -m soak

.PHONY: chaos
chaos: setup ## break a real cluster in about twelve ways and judge what its clients saw
	@$(BIN)/python -m kraftctl drill run --suite chaos --seed $(or $(SEED),1) \
	--repeat $(or $(REPEAT),1) $(if $(OUT),--out $(OUT))

.PHONY: chaos-all
chaos-all: setup ## all drills (SEED=1 REPEAT=1 OUT=directory)
	@$(BIN)/python -m kraftctl drill run --suite all --seed $(or $(SEED),1) \
	--repeat $(or $(REPEAT),1) $(if $(OUT),--out $(OUT))

# Built elsewhere and moved, so that a build that fails leaves no half of a program.
TOXIPROXY = github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0
.PHONY: toxiproxy
toxiproxy: ## build the real toxiproxy-server into .tools/ (needs Go; the drills also run without)
	@command -v go >/dev/null || { echo "make $@: there is no Go toolchain: install Go 1.23 or" \
	"newer, or put a toxiproxy-server on PATH; without it drills use the embedded server" >&2; \
	exit 1; }
	@mkdir -p .tools/build && GOBIN="$(CURDIR)/.tools/build" go install $(TOXIPROXY)
	@mv .tools/build/server .tools/toxiproxy-server && rmdir .tools/build
	@echo "built .tools/toxiproxy-server"

.PHONY: bench
bench: setup ## every benchmark, as ratios to a peer or to the raw limit
	$(if $(BENCHMARKS),,$(call missing,there is no benchmark in benchmarks/ yet.))
	@$(ENV) for benchmark in $(BENCHMARKS); do \
	echo "== $$benchmark"; $(BIN)/python -m benchmarks.$$benchmark || exit; done

.PHONY: clean
clean: ## remove what builds and tests leave behind; .venv stays
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -rf .import_linter_cache kraftlog/*.so
	find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
