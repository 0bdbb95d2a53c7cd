# Two commands: `make run` opens the app, `make test` checks everything. Each sets itself up.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
ADDRESS ?= localhost
# Python compiles what it imports, and keeps it, whatever the shell says: tests start dozens of interpreters, and each
# would compile it all again. Compiling all that torch and plotly bring takes longer than fetching it.
export PYTHONDONTWRITEBYTECODE :=
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile

.PHONY: run host test test-library languages bench load attacks serve-test clean

# For yourself: heard by this machine alone, unless ADDRESS says more. Strangers are for `make host`.
run: $(VENV)/.app
	$(BIN)/streamlit run app.py --server.port $(PORT) --server.address $(ADDRESS)

# The same under the hosted profile, for strangers.
host: $(VENV)/.app
	STREAMLIT_SERVER_PORT=$(PORT) $(BIN)/python hosted.py

# Three processes for two cores, each on one thread: a test often waits for a server or a browser. Long files come first.
test: $(VENV)/.peers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/oxlint --deny-warnings assets/components
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $$($(BIN)/python -c 'import os; print(min(3 * os.cpu_count() // 2, 12) or 1)') --dist loadfile --no-loadscope-reorder

# The library's tests by themselves: importing streamlit, playwright, plotly or any part of the app is an error.
test-library: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -p tests.library_only tests/viz_core --ignore=tests/viz_core/figures

# Every chapter in every language, wide and on a phone, with every tab and sheet open: nothing cut off, all within reach.
languages: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest tests/browser/every_language.py

# All of it, or some: make bench ONLY="recording looking". Ctrl-C goes on to the next part.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(ONLY)

$(VENV)/.app: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) -r requirements.txt
	touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.app
	$(PIP_INSTALL) -r requirements-dev.txt
	touch $@

$(VENV)/.peers: requirements-peers.txt $(VENV)/.dev
	$(PIP_INSTALL) --no-deps --upgrade --target $(VENV)/peers -r requirements-peers.txt
	touch $@

$(VENV)/.bench: requirements-bench.txt $(VENV)/.dev
	$(PIP_INSTALL) --no-deps -r requirements-bench.txt
	touch $@

# 50 visitors at once, each typing sentences of their own and checking that the maps are theirs; make load ARGS="--visitors 10".
load: $(VENV)/.dev
	$(BIN)/python -m benchmarks.load $(ARGS)

# Everything a stranger may try, for as long as it takes; docs/security.md is written of it.
attacks: $(VENV)/.peers
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.attacks

# The app against a real Ray Serve on this machine, one replica of which is killed.
serve-test: $(VENV)/.serve
	$(BIN)/pytest tests/serving/ray

$(VENV)/.serve: requirements-serve.txt $(VENV)/.dev
	$(PIP_INSTALL) -r requirements-serve.txt
	touch $@

clean:
	rm -rf $(VENV)
