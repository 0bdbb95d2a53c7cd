# `make run` starts the app, `make test` checks a change, `make test-slow` the rest. Each installs what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
ADDRESS ?= localhost
# Write .pyc files even if the shell says not to: tests start dozens of interpreters, and each would compile everything
# again. Packages are not compiled at installation, which would take longer than downloading them.
export PYTHONDONTWRITEBYTECODE :=
# 1.5 processes per core, each with one thread, because tests often wait for a server or a browser. Long files come first.
PROCESSES = $$($(BIN)/python -c 'import os; print(min(3 * os.cpu_count() // 2, 12) or 1)')
PYTEST = OMP_NUM_THREADS=1 $(BIN)/pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder
TYPESCRIPT := 7.0.2
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile

.PHONY: run host test test-slow test-all browser check subjects types families test-library test-ranges test-chemistry docs course site languages bench load attacks serve-test clean

# Start the app on localhost. ADDRESS=0.0.0.0 makes it visible to your network; for a public server use `make host`.
run: $(VENV)/.app
	$(BIN)/streamlit run app.py --server.port $(PORT) --server.address $(ADDRESS)

# Start a public server, with the hosted profile.
host: $(VENV)/.app
	STREAMLIT_SERVER_PORT=$(PORT) $(BIN)/python hosted.py

# Before every commit: all tests but the slow ones, which tests/conftest.py names.
test: check browser
	$(PYTEST) -m "not slow"

# The tests that `make test` leaves out.
test-slow: browser $(VENV)/.peers $(VENV)/.lens
	$(PYTEST) -m slow

# What continuous integration runs: no test twice.
test-all: test
	$(MAKE) --no-print-directory test-slow

# A Chromium for the browser tests: the system's, or one that playwright downloads into your home.
browser: $(VENV)/.dev
	@for name in chromium-headless-shell chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit; done; \
	$(BIN)/playwright install --only-shell chromium || \
	echo "Install Chromium (apt-get install chromium): without it the browser tests do not run."

# While one core checks types, another collects all tests: each test process then finds what it imports compiled.
check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/oxlint --deny-warnings assets/components static_site
	$(MAKE) --no-print-directory subjects types
	OMP_NUM_THREADS=1 $(BIN)/pytest --collect-only -qq >/dev/null & $(BIN)/mypy; status=$$?; wait; exit $$status

# Check that the subjects of new commits have at most 72 characters, where their history is there.
SUBJECTS_SINCE := 2e0b5964
subjects:
	@! git cat-file -e $(SUBJECTS_SINCE) 2>/dev/null || git log --format=%s $(SUBJECTS_SINCE)..HEAD | \
	awk 'length > 72 { print "A subject has more than 72 characters: " $$0; long = 1 } END { exit long }'

# Check the types of the attention view's scripts, where node and the npm registry can be reached.
types:
	@if npm view typescript@$(TYPESCRIPT) version >/dev/null 2>&1; \
	then npx --yes --package typescript@$(TYPESCRIPT) tsc --project assets/components/attention_view; \
	else echo "The types of the attention view are not checked: no npm, or no registry."; fi

# The library's tests by themselves: importing streamlit, playwright, plotly or any part of the app is an error.
test-library: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -p tests.library_only tests/viz_core

# A sample of tests with the versions of transformers that tests/ranges.py names, each installed anew: weekly. ARGS names
# other versions or tests: make test-ranges ARGS="torch==2.9.1 tests/viz_core", which takes 7 GB and half an hour.
test-ranges: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.ranges $(ARGS)

# Compare attention and atom maps with those of rxnmapper: for every week, not every change (requirements-chemistry.txt).
test-chemistry: $(VENV)/.chemistry
	OMP_NUM_THREADS=1 $(BIN)/pytest tests/viz_core/hub/test_kinds.py -k "smiles or package"

# Shrink and run every family of transformers, and write docs/architectures.md: nightly, about ten minutes.
families: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.viz_core.hub.test_family_table $(ARGS)

# Write the documentation site to build/docs; `python -m http.server -d build/docs` shows it.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Write six lessons in three languages to build/course. Links lead to the site without a server, ATLAS_SITE, where it shows
# the same, and to the app, ATLAS_ADDRESS.
course: $(VENV)/.dev
	$(BIN)/python docs/teach/course.py --address "$(or $(ATLAS_ADDRESS),http://localhost:8501)" --site "$(ATLAS_SITE)"

# Write the Atlas without a server to build/site: static pages whose models run in the browser. ATLAS_ADDRESS is that of
# the app, where their links lead.
site: $(VENV)/.dev
	$(BIN)/python -m static_site --app "$(ATLAS_ADDRESS)"

# Check the layout of every chapter in every language, on wide and narrow screens, with every tab and sheet open.
languages: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest tests/browser/every_language.py

# Run all benchmarks, or some: make bench ONLY="recording map_queries". Ctrl-C skips to the next part.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(ONLY)

# Says what is downloaded: the first installation takes minutes.
$(VENV)/.app: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(if $(CI),$(PIP_INSTALL),$(filter-out --quiet,$(PIP_INSTALL))) -r requirements.txt
	touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.app
	$(PIP_INSTALL) -r requirements-dev.txt
	touch $@

$(VENV)/.peers: requirements-peers.txt $(VENV)/.dev
	$(PIP_INSTALL) --no-deps --upgrade --target $(VENV)/peers -r requirements-peers.txt
	touch $@

$(VENV)/.lens: requirements-lens.txt $(VENV)/.dev
	$(PIP_INSTALL) --no-deps --upgrade --target $(VENV)/lens -r requirements-lens.txt
	touch $@

$(VENV)/.chemistry: requirements-chemistry.txt $(VENV)/.dev
	$(PIP_INSTALL) --no-deps --upgrade --target $(VENV)/chemistry -r requirements-chemistry.txt
	touch $@

$(VENV)/.bench: requirements-bench.txt $(VENV)/.dev
	$(PIP_INSTALL) --no-deps -r requirements-bench.txt
	touch $@

# 100 visitors at once, who type their own sentences and check the maps; make load ARGS="--visitors 10" for fewer.
load: $(VENV)/.dev
	$(BIN)/python -m benchmarks.load $(ARGS)

# Attacks on a server, its models, pictures, sounds and messages, with many cases; writes the tables of docs/security.md.
# It takes 6 minutes on two idle cores; `pytest -m attack` tries all attacks with few cases.
attacks: $(VENV)/.peers
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.attacks tests/attacks $(addprefix tests/viz_core/,hub/test_attacks.py images sounds view)

# Test the app on Ray Serve on this machine, with a replica that is killed.
serve-test: $(VENV)/.serve
	$(BIN)/pytest tests/serving/ray

$(VENV)/.serve: requirements-serve.txt $(VENV)/.dev
	$(PIP_INSTALL) -r requirements-serve.txt
	touch $@

clean:
	rm -rf $(VENV)
