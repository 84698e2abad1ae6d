"""An audit that things happen to."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRAINING = (
    *("--model", "mlp", "--hidden", 8, "--dropout", 0, "--epochs", 15, "--learning-rate", 0.1),
    *("--shadows", 100, "--threads", 2, "--quiet", "--release-as", "scores"),
)
DEFINITION = ("--definition", "bmp-r")


@dataclass(frozen=True)
class End:
    """How a command ended: its exit code, what it printed, how often it changed the folder, and which file last."""

    code: int
    printed: str
    changes: int
    last: str


class Commands:
    """Runs commands on one folder, each in a process of its own that something may happen to."""

    def __init__(self, server: subprocess.Popen[str], folder: Path, graph: Path) -> None:
        self.server, self.folder, self.graph = server, folder, graph

    def audit(self, *more: object, **what_happens: Any) -> End:
        """The whole audit; it goes on where the one before was stopped."""
        return self.run(
            "audit", self.graph, *TRAINING, "--definition", "bmp-r", *more, "--out", self.folder, **what_happens
        )

    def run(self, *arguments: object, **what_happens: Any) -> End:
        """Any command."""
        log = self.folder.with_suffix(".log")
        request = {"arguments": [*map(str, arguments)], "folder": str(self.folder), "log": str(log), **what_happens}
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        code, changes, last = json.loads(self.server.stdout.readline())
        return End(code, log.read_text(), changes, last)

    def elsewhere(self, folder: Path) -> Commands:
        """The same for another folder."""
        return Commands(self.server, folder, self.graph)

    def leftovers(self) -> list[Path]:
        """Files that were not finished."""
        return [path for path in self.folder.rglob("*") if "partial" in path.name]

    def answer(self) -> dict[str, bytes]:
        """Every file but the lock; of the summary and the page all but how long it took."""
        files = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != ".lock"
        }
        summary = json.loads(files["summary.json"])
        del summary["timings"]
        files["summary.json"] = json.dumps(summary).encode()
        # These hold timings, or checksums of what holds them.
        return {name: content for name, content in files.items() if name not in ("report.html", "manifest.json")}
