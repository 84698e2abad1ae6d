#!/usr/bin/env bash
# Builds the native kernels with sanitizers and runs the tests of native code with them; called by make sanitize.
# AddressSanitizer and UndefinedBehaviorSanitizer watch all of these tests, ThreadSanitizer those with several threads.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
cmake=${CMAKE:-cmake}
root=$PWD/build/sanitize

build() { # name, sanitizers
    local folder=$root/$1
    "$cmake" -S . -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBMPAUDIT_SANITIZE="$2" \
        ${NINJA:+-DCMAKE_MAKE_PROGRAM="$NINJA"} -DPython_EXECUTABLE="$(command -v "$python")" \
        -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" >/dev/null
    "$cmake" --build "$folder/build" --target baseline cpu
    rm -rf "$folder/src"
    mkdir -p "$folder/src"
    cp -r src/bmpaudit "$folder/src/"
    rm -f "$folder"/src/bmpaudit/_native/*.so
    cp "$folder"/build/baseline.*.so "$folder"/build/cpu.*.so "$folder/src/bmpaudit/_native/"
}

run() { # name, library, tests ...
    local folder=$root/$1 library
    library=$(g++ -print-file-name="$2")
    shift 2
    echo "== $folder: $*"
    # The interpreter is not instrumented: the sanitizer's library has to be there first. Leaks are the interpreter's own.
    env LD_PRELOAD="$library $(g++ -print-file-name=libstdc++.so)" PYTHONPATH="$folder/src" BMPAUDIT_INSTRUCTION_SET=baseline \
        PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
        ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=8192 UBSAN_OPTIONS=print_stacktrace=1 \
        TSAN_OPTIONS=halt_on_error=1:report_signal_unsafe=0:allocator_may_return_null=1 \
        "$python" -m pytest -q -p no:cacheprovider --override-ini=addopts= "$@"
}

build address address,undefined
run address libasan.so tests/native --deselect tests/native/test_instruction_sets.py -k "not no_further_threads"
build thread thread
run thread libtsan.so tests/native/test_interrupts.py tests/native/test_scores.py tests/native/test_views.py -k "not no_further_threads"
echo "sanitizers: clean"
