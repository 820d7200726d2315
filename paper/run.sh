#!/usr/bin/env bash
# The experiments of the paper: paper/run.sh [options of `python -m paper`]. Needs python3 and cargo; everything else is
# installed into target/paper-env, once. GARLIC_BIN=PROGRAM measures a program that is already built.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
python=${PYTHON:-python3}
env=$target/paper-env

stamp=$("$python" -c 'import hashlib, sys
print(sys.version.split()[0], hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' paper/requirements.txt)
if [ "$(cat "$env/stamp" 2>/dev/null || true)" != "$stamp" ]; then
    echo "making $env (once)" >&2
    rm -rf "$env"
    "$python" -m venv "$env"
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check -r paper/requirements.txt
    echo "$stamp" > "$env/stamp"
fi
if [ -z "${GARLIC_BIN:-}" ]; then
    "${CARGO:-cargo}" build --locked --release -p garlic-cli
    export GARLIC_BIN=$target/release/garlic
fi
# The classification goes through the Python package.
rm -rf "$target/paper-wheels"
"$env/bin/maturin" build --quiet --locked --release --out "$target/paper-wheels"
"$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall \
    "$target"/paper-wheels/garlic_ann-*.whl

export PYTHONDONTWRITEBYTECODE=1
exec "$env/bin/python" -m paper "$@"
