"""How large the code is, and how much of it one audit runs through: what a reader has to find and to keep in mind.

python benchmarks/size.py [--tree REPOSITORY] [--models 64] [--no-audit] [--stack]

Lines of code are those that are not blank, a comment or a docstring. An importer of a module is another module with an
import statement that names it, wherever that stands. The audit is the command line's, of the demo graph, in this
process and from its first import on; functions are those with a name, and the depth counts the frames of the package's
own files alone.
"""

import argparse
import ast
import contextlib
import inspect
import io
import statistics
import sys
import tempfile
import threading
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

import bmpaudit

PACKAGE = Path(bmpaudit.__file__).parent
NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


@dataclass(frozen=True)
class Source:
    """A Python file: how many lines it has, and the numbers of those that are code and that import."""

    num_lines: int
    code: frozenset[int]
    imports: frozenset[int]
    tree: ast.Module

    @classmethod
    def read(cls, path: Path) -> "Source":
        """The lines of a file."""
        text = path.read_text(encoding="utf-8")
        lines, tree = text.splitlines(), ast.parse(text)
        blank = {number for number, line in enumerate(lines, 1) if not line.strip()}
        tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in NO_CODE]
        filled = {number for token in tokens for number in range(token.start[0], token.end[0] + 1)}
        code = filled - blank - {number for node in ast.walk(tree) for number in _docstring_lines(node)}
        imports = {number for node in _imports(tree) for number in _lines_of(node)} & code
        return cls(len(lines), frozenset(code), frozenset(imports), tree)


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))


def _docstring_lines(node: ast.AST) -> range:
    """Those of a text that stands by itself, which documents a module, class, function, attribute or constant."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return _lines_of(node) if isinstance(node, ast.Expr) and is_text else range(0)


def importers(sources: dict[str, Source]) -> dict[str, set[str]]:
    """By module that is no package: the modules that import it, or something out of it."""
    found: dict[str, set[str]] = {name: set() for name in sources if not name.endswith(".__init__")}
    for importer, source in sources.items():
        for node in _imports(source.tree):
            for imported in _imported_names(importer, node):
                # Either a module itself, or something in it.
                for name in (imported, imported.rpartition(".")[0]):
                    if name in found and name != importer:
                        found[name].add(importer)
                        break
    return found


def _imported_names(importer: str, node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    above = importer.split(".")[: -node.level] if node.level else []
    return [".".join([*above, *([node.module] if node.module else []), alias.name]) for alias in node.names]


def print_sizes(package: Path) -> None:
    """Prints how many files and lines there are, what the lines are, and who imports whom."""
    sources = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts): Source.read(path)
        for path in sorted(package.rglob("*.py"))
    }
    num_lines = sum(source.num_lines for source in sources.values())
    num_code = sum(len(source.code) for source in sources.values())
    num_imports = sum(len(source.imports) for source in sources.values())
    native = package.parents[1] / "native"
    files = [path for path in native.rglob("*") if path.is_file()]
    show("Python files", f"{len(sources):,}")
    show("… lines", f"{num_lines:,}")
    show("… lines of code", f"{num_code:,}")
    show("… lines of code of a file, median", f"{statistics.median(len(each.code) for each in sources.values()):g}")
    show("… lines that import", f"{num_imports:,}")
    show("… of all lines", f"{num_imports / num_lines:.1%}")
    show("… of lines of code", f"{num_imports / num_code:.1%}")
    numbers = [len(each) for each in importers(sources).values()]
    show("modules, without packages", f"{len(numbers):,}")
    show("… with exactly one importer", f"{numbers.count(1):,}")
    if files:
        show("native files", f"{len(files):,}")
        show("… lines", f"{sum(len(path.read_text(encoding='utf-8').splitlines()) for path in files):,}")


def show(name: str, value: str) -> None:
    """Prints one figure."""
    print(f"{name:<36} {value:>8}")


@dataclass
class Trace:
    """What of the package has run, in any thread, and the deepest stack of its own frames."""

    codes: set[CodeType] = field(default_factory=set)
    deepest: list[CodeType] = field(default_factory=list)
    own: dict[str, bool] = field(default_factory=dict)  # by file

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """Notes a call, as Python's profiler reports it."""
        if event != "call" or not self._is_own(frame.f_code):
            return
        self.codes.add(frame.f_code)
        stack = []
        above: FrameType | None = frame
        while above is not None:
            if self._is_own(above.f_code):
                stack.append(above.f_code)
            above = above.f_back
        if len(stack) > len(self.deepest):
            self.deepest = stack

    def _is_own(self, code: CodeType) -> bool:
        name = code.co_filename
        if name not in self.own:
            self.own[name] = Path(name).is_relative_to(PACKAGE)
        return self.own[name]

    @property
    def functions(self) -> set[CodeType]:
        """Functions with a name: no modules, class bodies, lambdas and comprehensions."""
        named = {code for code in self.codes if not code.co_name.startswith("<")}
        return {code for code in named if code.co_flags & inspect.CO_OPTIMIZED}


def trace_audit(num_models: int) -> Trace:
    """Audits the demo graph by the command line, in this process and a folder that is removed."""
    trace = Trace()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        settings = ["--sampler", "snowball", "--shadows", str(num_models), "--out", str(Path(folder) / "audit")]
        threading.setprofile(trace.see)
        sys.setprofile(trace.see)
        try:
            from bmpaudit.cli import cli

            cli.main(["audit", "demo", *settings, "--quiet"], prog_name="bmpaudit", standalone_mode=False)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return trace


def print_trace(trace: Trace, *, with_stack: bool) -> None:
    """Prints how much of the package has run."""
    show("an audit of the demo graph runs", "")
    show("… functions", f"{len(trace.functions):,}")
    show("… in files", f"{len({code.co_filename for code in trace.functions}):,}")
    show("… frames deep", f"{len(trace.deepest):,}")
    if with_stack:
        for code in reversed(trace.deepest):
            print(f"    {Path(code.co_filename).relative_to(PACKAGE)}:{code.co_firstlineno} {code.co_qualname}")


def main() -> None:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, help="repository to count in [that of the package that is imported]")
    parser.add_argument("--models", type=int, default=64, help="shadow models of the audit")
    parser.add_argument("--no-audit", action="store_true", help="only count")
    parser.add_argument("--stack", action="store_true", help="show the deepest stack")
    arguments = parser.parse_args()
    print_sizes(PACKAGE if arguments.tree is None else arguments.tree / "src" / PACKAGE.name)
    if not arguments.no_audit:
        print_trace(trace_audit(arguments.models), with_stack=arguments.stack)


if __name__ == "__main__":
    main()
