from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files

import pytest

from bmpaudit.report.page import bundle, render_page

PARTS = files("bmpaudit.report") / "page_parts"


def joined(entry: str, **modules: str) -> str:
    def read(name: str) -> str:
        if name not in modules:
            raise FileNotFoundError(name)
        return modules[name]

    return bundle(entry, read)


def run(script: str) -> list[str]:
    node = shutil.which("node")
    assert node is not None, "node not found: install Node.js 20 or later"
    return subprocess.run([node, "-"], input=script, capture_output=True, text=True, check=True).stdout.splitlines()


def test_modules_run_once_and_before_those_that_import_them() -> None:
    script = joined(
        "import {left} from './left.js';\nimport {\n  right,\n} from './right.js';\nconsole.log(left(), right);\n",
        left="import {base} from './base.js';\nconsole.log('left');\nexport function left() {\n  return base + 1;\n}\n",
        right="import {base as given} from './base.js';\nconsole.log('right');\nexport const right = given * 10;\n",
        base="console.log('base');\nexport const base = 4;\n",
    )
    assert run(script) == ["base", "left", "right", "5 40"]


def test_names_that_are_not_exported_do_not_meet() -> None:
    script = joined(
        "import {one} from './a.js';\nimport {two} from './b.js';\nconst secret = 0;\nconsole.log(secret, one, two());",
        a="const secret = 1;\nexport const one = secret;",
        b="const secret = 2;\nexport async function two() {\n  return secret;\n}",
    )
    assert run(script) == ["0 1 Promise { 2 }"]


def test_code_is_strict() -> None:
    assert run(joined("try {\n  undeclared = 1;\n} catch (failure) {\n  console.log(failure.name);\n}")) == [
        "ReferenceError"
    ]


@pytest.mark.parametrize(
    ("entry", "modules", "message"),
    [
        (
            "import {a} from './a.js';",
            {
                "a": "import {b} from './b.js';\nexport const a = b;",
                "b": "import {a} from './a.js';\nexport const b = a;",
            },
            "modules import each other: a -> b -> a",
        ),
        ("import {a} from './a.js';", {"a": "import {a} from './a.js';"}, "modules import each other: a -> a"),
        ("import {a, b} from './a.js';", {"a": "export const a = 1;"}, "imports b, which a.js does not export"),
        ("import a from './a.js';", {}, "not understood: import a from"),
        ("import * as a from './a.js';", {}, "not understood: import"),
        ("import './a.js';", {}, "not understood: import './a.js'"),
        ("import {a} from 'https://example.org/a.js';", {}, "not understood"),
        ("import {a} from '../a.js';", {}, "not understood"),
        ("const a = await import('./a.js');", {}, r"not understood: import\('./a.js'\)"),
        ("export default 1;", {}, "not understood: export default 1"),
        ("export let a = 1;", {}, "not understood: export let a"),
        ("export const {a, b} = {};", {}, "not understood: export const {a, b}"),
        ("const a = 1;\nexport {a};", {}, "not understood: export {a}"),
        ("const a = '</script>';", {}, "must not contain '</script'"),
    ],
)
def test_what_cannot_be_joined_is_refused(entry: str, modules: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        joined(entry, **modules)


def test_every_script_is_part_of_the_page() -> None:
    page = render_page({"title": "", "answer": {"level": "none", "verdict": ""}, "words": {}})
    names = {part.name for part in PARTS.iterdir() if part.name.endswith(".js")}
    assert {name for name in names if f"const module$${name.removesuffix('.js')} = " not in page} == set()
