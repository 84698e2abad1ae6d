"""Pages of the site that are made from other files when it is built, and links to them (a hook of MkDocs).

| page | made from |
| --- | --- |
| `changelog.md`, `contributing.md`, `security.md` | the files of these names beside the README |
| `examples/*.md` | each example, its docstring above its code |
| `api/*.md` | the public names of each package |
| `*/files.md` | the folders of tables that pages link to |
| `source/*.md` | the tests that the page about the theory names |
"""

import ast
import importlib
import inspect
import posixpath
import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import bmpaudit
from bmpaudit.privacy import related

ROOT = Path(__file__).parents[1]
BESIDE_README = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
TESTS = tuple(sorted(f"tests/privacy/{path.name}" for path in (ROOT / "tests/privacy").glob("test_*.py")))
WHOLE_MODULES = ("bmpaudit.interfaces", "bmpaudit.privacy.related")  # all of their names are public
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def example_paths() -> list[str]:
    """Every example, relative to the repository."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").rglob("*.py"))


def pages_of_files() -> dict[str, str]:
    """By file of the repository, its page."""
    tests = {path: f"source/{path.removesuffix('.py')}.md" for path in TESTS}
    examples = {path: path.removesuffix(".py") + ".md" for path in example_paths()}
    others = {
        "VISION.md": "index.md",
        "examples/extending": "extending.md",
        "src/bmpaudit/interfaces.py": "api/interfaces.md",
    }
    folders = {f"docs/{name}": f"{name}/files.md" for name in data_folders()}
    return {**BESIDE_README, **tests, **examples, **folders, **others}


def data_folders() -> list[str]:
    """The folders of the docs that hold tables."""
    return sorted({path.parent.name for path in (ROOT / "docs").glob("*/*.csv")})


def files_page(folder: str) -> str:
    """A list of the files of a folder."""
    names = sorted(path.name for path in (ROOT / "docs" / folder).iterdir())
    return "\n".join([f"# Files of {folder}\n", *(f"- [{name}]({name})" for name in names)])


def packages() -> dict[str, ModuleType]:
    """The packages with public names, by the name of their page."""
    names = [name for name in bmpaudit.__all__ if inspect.ismodule(getattr(bmpaudit, name))]
    found = {name: importlib.import_module(f"bmpaudit.{name}") for name in names}
    return {"bmpaudit": bmpaudit, **{name: package for name, package in found.items() if hasattr(package, "__all__")}}


def documented_path(package: ModuleType, name: str) -> str:
    """Where a public name is defined, which is what its entry is found under."""
    thing = getattr(package, name)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return f"{thing.__module__}.{thing.__qualname__}"
    # A constant: the module below the package that assigns it.
    for path in sorted(Path(inspect.getfile(package)).parent.glob("*.py")):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return f"{package.__name__}.{path.stem}.{name}".replace(".__init__.", ".")
    raise LookupError(f"{package.__name__}.{name}: no file of the package assigns it")


def public_names(package: ModuleType) -> list[str]:
    """Its public names, other than packages."""
    names = [name for name in package.__all__ if not inspect.ismodule(getattr(package, name))]
    return sorted(set(names) - {"__version__"}, key=str.lower)


def api_page(package: ModuleType) -> str:
    """The page of a package; what the package `bmpaudit` itself has is described there."""
    about, _, more = (inspect.getdoc(package) or "").partition("\n")
    names = public_names(package)
    top = set(public_names(bmpaudit)) if package is not bmpaudit else set()
    lines = [f"# {package.__name__}", about, more]
    if top & set(names):
        links = ", ".join(f"[`{name}`][{documented_path(package, name)}]" for name in names if name in top)
        lines.append(f"Also here: {links}.")
    lines += [f"::: {documented_path(package, name)}" for name in names if name not in top]
    return "\n\n".join(lines)


def source_page(path: str) -> str:
    """A file of Python as a page, with a heading for each test."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    starts = {0: ""} | {start: name for name, start in tests_of(path).items()}
    text = [f"# {path}"]
    for start, end in pairwise([*starts, len(lines)]):
        text += [f"## {starts[start]} {{#{anchor(starts[start])}}}"] if start else []
        text.append(fenced("\n".join(lines[start:end]).strip("\n")))
    return "\n\n".join(text)


def tests_of(path: str) -> dict[str, int]:
    """The tests of a file by name, with the line, from 0, where each begins."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    classes = [item for item in tree.body if isinstance(item, ast.ClassDef)]
    found = [(item.name, item) for item in tree.body if isinstance(item, ast.FunctionDef)]
    found += [
        (f"{each.name}::{item.name}", item)
        for each in classes
        for item in each.body
        if isinstance(item, ast.FunctionDef)
    ]
    starts = {
        name: min(part.lineno for part in (item, *item.decorator_list)) - 1 for name, item in found if "test_" in name
    }
    return dict(sorted(starts.items(), key=lambda entry: entry[1]))


def anchor(test: str) -> str:
    """Where a test stands on its page."""
    return test.replace("::", "-")


def fenced(code: str) -> str:
    """Code that may itself hold fences."""
    return f"````python\n{code}\n````"


def docstring(source: str) -> str:
    """What a module says of itself."""
    return ast.get_docstring(ast.parse(source)) or ""


def example_page(path: str) -> str:
    """An example: what it says of itself, and its code."""
    source = (ROOT / path).read_text(encoding="utf-8")
    return f"# {path}\n\n{docstring(source)}\n\n{fenced(source.rstrip())}\n"


def examples_page() -> str:
    """A list of the examples, each with the first line that it says of itself."""
    lines = ["# Examples", "One file for each task, in the folder `examples`; tests run them all."]
    about = {path: docstring((ROOT / path).read_text(encoding="utf-8")) for path in example_paths()}
    rows = [f"| [`{path}`]({path.removesuffix('.py')}.md) | {text.splitlines()[0]} |" for path, text in about.items()]
    return "\n\n".join([*lines, "\n".join(["| example | |", "| --- | --- |", *rows])])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    made = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in BESIDE_README.items()}
    made |= {pages_of_files()[path]: source_page(path) for path in TESTS}
    made |= {pages_of_files()[path]: example_page(path) for path in example_paths()}
    made["examples.md"] = examples_page()
    made |= {f"{folder}/files.md": files_page(folder) for folder in data_folders()}
    made |= {f"api/{name}.md": api_page(package) for name, package in packages().items()}
    made |= {f"api/{name.rpartition('.')[2]}.md": f"# {name}\n\n::: {name}\n" for name in WHOLE_MODULES}
    for page, content in made.items():
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Leads links to files of the repository to their pages, and names of tests to their lines."""
    uri = page.file.src_uri
    made_from = {target: name for name, target in BESIDE_README.items()}.get(uri)
    base = "" if made_from else posixpath.dirname(f"docs/{uri}")

    def lead(found: re.Match[str]) -> str:
        target, anchor = found[1], found[2] or ""
        if "://" in target:
            return found[0]
        path = posixpath.normpath(posixpath.join(base, target))
        there = pages_of_files().get(path, path.removeprefix("docs/") if made_from else None)
        if there is None:
            return found[0]
        return f"]({posixpath.relpath(there, posixpath.dirname(uri) or '.')}{anchor})"

    markdown = LINK.sub(lead, markdown)
    return linked_theory(markdown) if uri == "theory.md" else markdown


def linked_theory(markdown: str) -> str:
    """The page about the theory, with links from its tables to the functions and from everywhere to the tests."""
    markdown = re.sub(r"`(test_\w+\.py)::([\w:]+)`", test_link, markdown)
    return "\n".join(
        re.sub(r"`([a-zA-Z_]+)(\.\w+)?`", function_link, line) if line.startswith("|") else line
        for line in markdown.split("\n")
    )


def test_link(found: re.Match[str]) -> str:
    """The name of a test as a link to its code."""
    return f"[{found[0]}]({pages_of_files()[f'tests/privacy/{found[1]}']}#{anchor(found[2])})"


def function_link(found: re.Match[str]) -> str:
    """The name of a function of the theory as a link to its description."""
    for package in (bmpaudit.privacy, related):
        if hasattr(package, found[1]):
            return f"[{found[0]}][{documented_path(package, found[1])}{found[2] or ''}]"
    return found[0]
