# Two commands: `make reproduce` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORES ?= $(shell nproc 2>/dev/null || echo 2)
# Tests sometimes wait for other processes, so three of them run at a time for every two cores.
TESTS := $(shell echo $$(( ($(CORES) * 3 + 1) / 2 )))
# What a run needs, the tools of maintainers, and the compiled kernels of all methods.
RUN := $(VENV)/.installed
STAMP := $(VENV)/.tools
COMPILED := $(VENV)/.compiled
SHELL := bash
# Of what Snakemake says, a line for each job that is done, and all that is unusual.
STEPS := grep --line-buffered -vE '^(Execute [0-9]+ jobs|Select jobs|Finished jobid|\[.*\]$$)'

.PHONY: setup reproduce test test-slow test-slurm test-wheel docs lint format schema clean

setup: $(STAMP)

# Python compiles the modules that it imports and keeps them, which takes less time than to compile all packages ahead.
unexport PYTHONDONTWRITEBYTECODE

# uv where it works (seconds instead of a minute), else pip: some sites configure their index for pip alone.
define install
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(1) 2>/dev/null || $(BIN)/python -m pip install --quiet --no-compile $(1)
	touch $@
endef

$(RUN): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv || true
	$(call install,--constraint requirements.lock --editable ".[pipeline]")

$(STAMP): $(RUN)
	$(call install,--requirement requirements.lock)

# A run compiles what it uses. Tests in many processes would compile the same kernels several times.
$(COMPILED): $(STAMP)
	@echo "Compiling all kernels, which takes about a minute."
	$(BIN)/python tools/compile_kernels.py
	touch $@

reproduce: $(RUN)
	@set -o pipefail; \
	$(BIN)/snakemake --cores $(CORES) --configfile config/quickstart.yaml --quiet rules host 2>&1 | (trap '' INT; $(STEPS))
	@echo "Now open results/quickstart/report/index.html in a browser."

test: $(COMPILED)
	$(BIN)/python -m pytest -m "not slow and not slurm" --numprocesses $(TESTS) --maxprocesses 8 --dist loadfile \
	  --no-loadscope-reorder

test-slow: $(COMPILED)
	$(BIN)/python -m pytest -m slow --numprocesses $(CORES) --maxprocesses 8 --dist worksteal

# SLURM's daemons on the loopback interface, out of Debian's packages (installed if missing), as root.
test-slurm: $(COMPILED)
	tests/cluster/install_slurm.sh
	$(BIN)/python -m pytest -m slurm

# Build the wheel, install it into an environment with its dependencies alone, and use it there.
test-wheel: $(STAMP)
	rm -rf build/wheel build/empty
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install --quiet build/wheel/*.whl
	cd build && empty/bin/python ../tests/package/use_wheel.py

# Build the site into build/site. Its examples are executed, and warnings are errors.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "Now open build/site/index.html in a browser."

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check workflow
	$(BIN)/snakemake --lint

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt workflow

schema: $(STAMP)
	$(BIN)/python -c "from fairclust.pipeline.config import json_schema; print(json_schema(), end='')" \
	  > workflow/schemas/config.schema.json

clean:
	rm -rf $(VENV) results/quickstart .pytest_cache .mypy_cache .ruff_cache
