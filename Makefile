# `make demo` shows what the project does, `make test` runs every check; they need only Rust, Python 3 and make.

CARGO ?= cargo
DEMO_DIR ?= demo
RESULTS ?= bench/results
# Data sets of `make bench`: names in GARLIC_DATA (else ~/.cache/garlic/datasets), or HDF5 files of your own.
SET ?= fashion-mnist-784-euclidean mnist-784-euclidean photosift1m-128-euclidean sift-128-euclidean techdocs-384-angular
MINUTES ?= 40

.PHONY: help demo test lint audit unit scalar aarch64 python wheels package docs bench kernels bench-live paper soak clean

help:
	@echo "make demo    make a synthetic data set, train, compare, write $(DEMO_DIR)/report.html"
	@echo "make test    lints, all tests, all of them once more on the scalar kernels, and the Python package"
	@echo "make lint    formatting, clippy and documentation, warnings are errors"
	@echo "make aarch64 the tests of the portable kernels on another processor, emulated"
	@echo "make python  build the Python package into a fresh virtual environment and run its tests"
	@echo "make wheels  the wheel for manylinux and the source distribution, each installed and tried in an empty environment"
	@echo "make package check that the crates can be published: their metadata and the files that they carry"
	@echo "make docs    the documentation as a site with search, in target/docs-site"
	@echo "make bench   GARLIC beside its rivals on the data sets that are there; SET=name or file for one of them"
	@echo "make kernels microbenchmarks of the kernels against their limits"
	@echo "make bench-live   points added online, and filters; LIVE_SET=name"
	@echo "make paper   the published experiments, baselines and a report; QUICK=1 for a look, ONLY=name for one"
	@echo "make soak    the long versions of the randomised tests"

demo:
	$(CARGO) run --locked --release -p garlic-cli -- demo --out $(DEMO_DIR)

test: lint audit package unit scalar python

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps
	$(FEATURES) -p garlic-ann -- -D warnings
	$(FEATURES) -p garlic-ann --features live -- -D warnings
	$(FEATURES) -p garlic-ann --features toml -- -D warnings
	$(FEATURES) -p garlic-core -- -D warnings
	$(FEATURES) -p garlic-cli -- -D warnings

# Features by themselves: a build of the workspace has all of them on.
FEATURES = $(CARGO) clippy --locked --quiet --no-deps --no-default-features

audit:
	tools/audit

unit:
	$(CARGO) test --locked --workspace

# The scalar kernels are the oracle of the others: what is built on them must work on them alone.
scalar:
	GARLIC_SIMD=scalar $(CARGO) test --locked --workspace

# The portable kernels on a processor that has no others, in QEMU. `make test` leaves it out: it needs gcc-aarch64-linux-gnu,
# qemu-user, and the standard library for the target (`rustup target add aarch64-unknown-linux-gnu`).
aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER ?= aarch64-linux-gnu-gcc
aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER ?= qemu-aarch64 -L /usr/aarch64-linux-gnu
aarch64:
	$(CARGO) test --locked --target aarch64-unknown-linux-gnu -p garlic-simd

# The Python package: its wheel in a fresh virtual environment, its tests, and those of `make paper`. The wheel has the profile of
# the other tests, so that most of it is compiled already; `make wheels` makes those that people install.
PYTHON ?= python3
PYENV ?= target/python-env

python:
	rm -rf $(PYENV) target/wheels
	$(PYTHON) -m venv $(PYENV)
	$(PYENV)/bin/pip install --quiet -r python/requirements-test.txt -r paper/requirements.txt
	$(PYENV)/bin/maturin build --profile dev --out target/wheels
	$(PYENV)/bin/pip install --quiet --no-index --no-deps target/wheels/garlic_ann-*.whl
	$(PYENV)/bin/python tools/try-package target/wheels/garlic_ann-*.whl
	$(PYENV)/bin/python -m pytest -q

# Up to half an hour: the wheel compiles everything anew, the source distribution what `make demo` has not compiled. The wheel
# is for Linux on x86-64 (manylinux2014) and Python 3.10 or later.
WHEELENV ?= target/wheel-env
wheels:
	rm -rf $(WHEELENV) target/dist
	$(PYTHON) -m venv $(WHEELENV)
	$(WHEELENV)/bin/pip install --quiet -r python/requirements-wheels.txt
	. $(WHEELENV)/bin/activate && maturin build --release --zig --compatibility manylinux2014 --target x86_64-unknown-linux-gnu --out target/dist
	$(WHEELENV)/bin/maturin sdist --out target/dist
	CARGO_TARGET_DIR=$(abspath target) $(WHEELENV)/bin/python tools/try-package target/dist/garlic_ann-*.whl target/dist/garlic_ann-*.tar.gz

# The packages as they would be published. Nothing is compiled: `make unit` has done that.
package:
	$(CARGO) package --quiet --locked --workspace --exclude garlic-py --no-verify --allow-dirty

# The site needs mdBook, which is compiled once. `make test` does not: python/tests/test_links.py checks the pages.
MDBOOK_VERSION = 0.5.4
MDBOOK = target/tools/bin/mdbook
docs: $(MDBOOK)
	$(MDBOOK) build
	@echo "docs: open target/docs-site/index.html"

$(MDBOOK):
	$(CARGO) install --locked --root target/tools --version $(MDBOOK_VERSION) --no-default-features --features search mdbook

# One set after the other; a set that is not there is told and left out.
bench:
	bench/all --minutes $(MINUTES) --out $(RESULTS) -- $(SET)

kernels:
	$(CARGO) run --locked --release -p garlic-simd --example roofline

# The tables of docs/internals/updates.md, docs/internals/exactness.md, docs/guide/filters.md and, of the neighbour graph,
# docs/internals/graph.md.
LIVE_SET ?= photosift1m-128-euclidean
GRAPH_SET ?= techdocs-384-angular
LIVE_DATA ?= $(or $(GARLIC_DATA),$(HOME)/.cache/garlic/datasets)
bench-live:
	$(CARGO) run --locked --release -p garlic-cli --example streaming -- $(LIVE_DATA)/$(LIVE_SET).hdf5
	$(CARGO) run --locked --release -p garlic-cli --example filters -- $(LIVE_DATA)/$(LIVE_SET).hdf5
	$(CARGO) run --locked --release -p garlic-cli --example graph_changes -- $(LIVE_DATA)/$(GRAPH_SET).hdf5

# Every experiment of experiments/ that has no result in $(PAPER_OUT) yet, then the report. QUICK=1: parts of the data,
# under a quarter of an hour; ONLY=name,name: some of them.
PAPER_OUT ?= target/paper$(if $(QUICK),-quick)
paper:
	paper/run.sh --out $(PAPER_OUT) $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

# Hours: every byte of small files changed, millions of changed files, logs and requests, power cuts at every byte,
# processes killed a thousand times, ten thousand connections at a time, 200,000 operations against a model, a minute of
# sixteen threads, recall targets on every kind of hostile data and on growing indexes.
soak:
	PROPTEST_CASES=20000 GARLIC_SOAK=1 GARLIC_FUZZ_ITERATIONS=10000000 GARLIC_FUZZ=10000000 GARLIC_CUTS=10 \
	GARLIC_KILLS=500 GARLIC_CONNECTIONS=10000 GARLIC_SCHEDULES=20000 GARLIC_OPERATIONS=100000 GARLIC_STRESS_SECONDS=60 \
	$(CARGO) test --locked --release --workspace

clean:
	$(CARGO) clean
	rm -rf $(DEMO_DIR)
