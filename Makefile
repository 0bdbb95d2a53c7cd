# Two commands: `make run` opens the app, `make test` checks everything. Each sets itself up.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: run test bench clean

run: $(VENV)/.app
	$(BIN)/streamlit run app.py --server.port $(PORT)

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

$(VENV)/.app: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) -r requirements.txt
	touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.app
	$(PIP_INSTALL) -r requirements-dev.txt
	touch $@

clean:
	rm -rf $(VENV)
