"""The page's own scripts under Node.js, without a browser. A missing Node.js is a failure."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

PARTS = files("bmpaudit.report") / "page_parts"


def call(folder: Path, module: str, function: str, cases: Sequence[Sequence[Any]]) -> list[Any]:
    """Calls a function that a script of the page exports, once for each list of arguments.

    Args:
        folder: An empty or missing folder, to copy the scripts to.
        module: Such as `statistics.js`.
        function: What it exports.
        cases: Arguments of each call; None is null.
    """
    node = shutil.which("node")
    assert node is not None, "node not found: install Node.js 20 or later"
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text('{"type": "module"}')  # else Node.js takes them for CommonJS
    for part in PARTS.iterdir():
        if part.name.endswith(".js"):
            (folder / part.name).write_text(part.read_text(encoding="utf-8"), encoding="utf-8")
    program = f"""
        import {{{function}}} from './{module}';
        let text = '';
        for await (const chunk of process.stdin) text += chunk;
        const results = JSON.parse(text).map((case_) => {function}(...case_));
        console.log(JSON.stringify(results));
    """
    done = subprocess.run(
        [node, "--input-type=module", "--eval", program],
        cwd=folder,
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: list[Any] = json.loads(done.stdout)
    return results
