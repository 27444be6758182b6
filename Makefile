VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
LAYA_VENV ?= .venv-laya
# The peer's comparison and policy checker need nothing but itself: tests ask both the same questions.
PEER_PACKAGE = laya==0.4.15
export OMP_NUM_THREADS = 1

.PHONY: help demo test test-laya check format golden pages docs bench clean

help:  ## Show what can be made.
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/steelyard: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test: pyproject.toml $(BIN)/steelyard
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,use]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(PEER_PACKAGE)
	@touch $@

demo: $(BIN)/steelyard  ## Set up and run the main job on embedded data.
	$(BIN)/steelyard demo

test: $(VENV)/.test  ## Set up and run every test, with coverage of the numeric core.
	$(BIN)/python -m pytest --cov --cov-report=
	$(BIN)/python -m coverage report --skip-covered --fail-under=95 \
		--include='*/steelyard/stats/*,*/steelyard/metrics/*,*/steelyard/formats/*,*/steelyard/run/*'

$(LAYA_VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(LAYA_VENV)
	$(LAYA_VENV)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(LAYA_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		'laya[serve]==0.4.15' -e '.[onnx]' 'pytest>=8' 'hypothesis>=6.100'
	@touch $@

test-laya: $(LAYA_VENV)/.test  ## Set up torch, laya and onnxruntime, and run the tests that need them.
	HF_HUB_OFFLINE=1 $(LAYA_VENV)/bin/python -m pytest tests/laya

check: $(VENV)/.test  ## Lint, types, floors and budgets.
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

format: $(VENV)/.test  ## Format the code.
	$(BIN)/ruff check --fix src tests benchmarks
	$(BIN)/ruff format src tests benchmarks

golden: $(VENV)/.test  ## Write the golden reports anew; look at the diff before committing it.
	$(BIN)/python -m tests.golden.make

pages: $(VENV)/.test  ## Write the page of metrics anew.
	$(BIN)/python -m tests.pages

docs: $(VENV)/.test  ## Run every code block of the README and docs.
	$(BIN)/python -m pytest tests/test_docs.py

bench: $(VENV)/.test  ## Run the benchmarks; PEER=path/to/python compares with an installed peer.
	$(BIN)/python -m benchmarks $(if $(PEER),--peer $(PEER))

clean:  ## Remove the virtual environment and caches.
	rm -rf $(VENV) $(LAYA_VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
