"""Files that other programs read: each satisfies the schema of whoever reads it."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import check_jsonschema
import pytest
import yaml
from click.testing import CliRunner

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("github-actions", "action.yml"),
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_files_satisfy_their_schema(schema: str, pattern: str) -> None:
    files = sorted(map(str, ROOT.glob(pattern)))
    assert files
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", f"vendor.{schema}", *files])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("platform", "archs", "tags"),
    [
        ("linux", "x86_64,aarch64", ["manylinux_x86_64", "manylinux_aarch64"]),
        ("macos", "arm64", ["macosx_arm64"]),
    ],
)
def test_cibuildwheel_builds_for_every_python(platform: str, archs: str, tags: list[str]) -> None:
    machine = ("--platform", platform, "--archs", archs)
    command = [sys.executable, "-m", "cibuildwheel", *machine, "--print-build-identifiers", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wanted = {f"cp{version.replace('.', '')}-{tag}" for version in pythons() for tag in tags}
    assert set(done.stdout.split()) == wanted


def test_the_tests_run_on_every_python() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert workflow["jobs"]["all"]["strategy"]["matrix"]["python"] == pythons()


def pythons() -> list[str]:
    """The versions of Python that the package says it supports."""
    said = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in PROJECT["classifiers"])
    return [match[1] for match in said if match]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_no_rights_but_those_that_a_job_asks_for(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"]
        assert job["timeout-minutes"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_that_exist(path: Path) -> None:
    targets = set(re.findall(r"^([\w./$()-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([\w-]+)", path.read_text())) <= targets


def test_the_dev_container_builds_what_the_makefile_builds() -> None:
    command = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())["postCreateCommand"]
    assert command == "make .venv/test-tools && npm ci"
    assert "$(VENV)/test-tools:" in (ROOT / "Makefile").read_text()
