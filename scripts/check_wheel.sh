#!/usr/bin/env bash
# Installs the wheel in dist/ into a new virtual environment and runs the demo from an empty folder, with nothing on the path
# but that environment: no compiler, no other bmpaudit. Called by make wheel-check, which gets the dependencies as a user
# would, and with --borrow by make test, which takes those of the test environment.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
wheel=$(realpath dist/*.whl)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/start"
cd "$folder/start"
"$python" -m venv --without-pip ../environment
environment=$folder/environment
packages=$("$environment/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
pip=("$python" -m pip --python "$environment/bin/python" install --quiet --disable-pip-version-check)
alone() { env -u PYTHONPATH PATH="$environment/bin" "$@"; }

if [ "${1:-}" = --borrow ]; then
    alone "${pip[@]}" --no-deps "$wheel"
    # What such a file names comes after the environment's own packages: bmpaudit itself is the wheel's.
    "$python" -c "import sysconfig; print(sysconfig.get_path('purelib'))" >"$packages/borrowed.pth"
else
    TIMEFORMAT="installed in %0R s, %0U s of them processor time; MB on disk:"
    time alone "${pip[@]}" --only-binary :all: "$wheel"
    du -sm "$packages"
    du -sm "$packages"/* | sort -rn | sed -n 1,16p
fi
imported=$(alone python -c "import bmpaudit; print(bmpaudit.__file__)")
if [ "$imported" != "$packages/bmpaudit/__init__.py" ]; then
    echo "bmpaudit must be the one in $packages, got $imported" >&2
    exit 1
fi
alone bmpaudit demo --quiet
test -s bmpaudit-demo/report.html
echo "${wheel##*/}: the demo ran"
