"""Every command of the documentation is run or, if it cannot be, its program, files and options are looked up."""

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import documentation
from documentation import BLOCK, ROOT, blocks, write_examples
from fairclust import cli
from fairclust.cli.options import COMMANDS, command_line
from fairclust.pipeline.config import laid_over
from toys import write_people
from working_folder import jobs_of

# The list of changes describes earlier versions, too.
PAGES = [page for page in documentation.PAGES if page.name != "CHANGELOG.md"]
PROGRAMS = ("make", "snakemake", "fairclust", "python", "conda", "pip", "docker", "apptainer")

# These commands are not run, and only their options are parsed. All other commands are run.
NOT_RUN = {
    "fairclust verify": "needs a finished run",
    "fairclust score": "needs labels of a data set and a finished run; tests/cli/test_score.py runs it",
    "snakemake --report": "needs a finished run",
    "fairclust fit --scheduler": "needs a Dask scheduler",
}


def commands(page):
    """Yield the commands in a page's blocks as lists of words. Continued lines are joined."""
    for text in blocks(page, "sh"):
        for line in text.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words


def spans(page):
    """Return the texts between single backticks."""
    text = BLOCK.sub("", page.read_text())
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def inline(page):
    """Yield the commands within a page's sentences."""
    for span in spans(page):
        if span.split()[0] in PROGRAMS and " " in span:
            yield shlex.split(span)


EVERY = [(page, words) for page in PAGES for words in (*commands(page), *inline(page))]


def of(program):
    """Return the different commands of a program."""
    return [list(words) for words in dict.fromkeys(tuple(words) for _, words in EVERY) if words[0] == program]


def test_blocks_are_in_languages_that_are_tested():
    for page in PAGES:
        languages = {language for language, _ in BLOCK.findall(page.read_text())}
        # The Snakefile of the page on the pipeline is the one of tests/workflow/test_deployed.py. Drawings are text.
        assert languages <= {"sh", "python", "yaml", "csv", "snakemake", "text"}, page


def test_every_command_is_known():
    known = {*PROGRAMS, "cp", "export", ".", "srun"}
    assert [words for _, words in EVERY if words[0] not in known] == []
    assert [
        start for start in NOT_RUN if not any(" ".join(words).startswith(start) for _, words in EVERY)
    ] == []


def not_run(words):
    return any(" ".join(words).startswith(start) for start in NOT_RUN)


def test_make_has_these_targets(root):
    makefile = (root / "Makefile").read_text()
    for _, *targets in of("make"):
        for target in targets:
            name, sign, _ = target.partition("=")
            found = rf"^{name} \?=" if sign else rf"^{name}:"
            assert re.search(found, makefile, flags=re.MULTILINE), target
    for _, file in of("."):
        assert file == re.search(r"^VENV := (.*)$", makefile, flags=re.MULTILINE)[1] + "/bin/activate"


def test_environments_and_packages_exist(root):
    environment = yaml.safe_load((root / "environment.yml").read_text())
    for _, *words in of("conda"):
        if words[0] == "activate":
            assert words[1:] == [environment["name"]]
        else:
            assert words == ["env", "create", "-f", "environment.yml"]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    listed = {re.split(r"[<>=\[]", line)[0] for group in extras.values() for line in group}
    for _, *words in of("pip"):
        assert words[0] == "install"
        # A dot is a clone of the project.
        assert set(words[1:]) <= {".", *listed, *(f".[{extra}]" for extra in extras)}


def test_scripts_have_these_options():
    for _, *words in of("python"):
        if words[0] == "-m":
            assert importlib.util.find_spec(words[1])
        else:
            assert_options_exist(words)


def assert_options_exist(words):
    """Check that a script has all options that it is called with."""
    text = (ROOT / words[0]).read_text()
    for option in (word for word in words if word.startswith("-")):
        assert f'"{option}"' in text, words


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Change to a folder as after a clone, with little to run, and with the files that the pages name."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("workflow", "profiles", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "config").mkdir()
    for name in ("datasets", "methods", "papers", "field.yaml"):
        (folder / "config" / name).symlink_to(ROOT / "config" / name)
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    # Of each paper that a page runs, something is left.
    sets = ["synthetic", "synthetic_unequal", "creditcard_minmax", "law_school"]
    little = {"datasets": sets, "methods": ["kmeans", "vfc_kmeans"]}
    config["run"] = {"papers": ["vfc"], "only": little}
    (folder / "config/config.yaml").write_text(yaml.safe_dump(config))
    people = write_people(folder / "people.csv")
    (folder / "big").mkdir()
    people[["age", "income", "sex"]].to_parquet(folder / "big/0.parquet")
    # The data set and the method of the gallery, and how the method enters the benchmark.
    (folder / "mine.yaml").write_text(blocks("docs/report.md", "yaml")[0])
    dataset, method = map(yaml.safe_load, blocks("docs/gallery/adding.md", "yaml"))
    mine = laid_over(dataset, method)
    mine["run"]["methods"].append("stripes")
    (folder / "my.yaml").write_text(yaml.safe_dump(mine))
    write_examples(folder)
    return folder


def test_fairclust_runs(folder, monkeypatch, capsys):
    ran = of("fairclust")
    assert len(ran) > 5
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("SHELL", "/bin/bash")
    for words in ran:
        arguments = words[1:]
        monkeypatch.chdir(folder)
        if not_run(words):
            command_line().parse_args(arguments, exit_on_error=False)
        else:
            try:
                code = cli.main(arguments)
            except SystemExit as end:
                code = end.code
            assert not code, f"{shlex.join(words)}: {capsys.readouterr().err}"
    assert (folder / "labels.csv").is_file()
    completion = [file for file in (folder / "home").rglob("*") if file.is_file()]
    assert any("complete" in file.read_text() and "front" in file.read_text() for file in completion)


DRY_RUNS = """
import contextlib, io, json, sys
from snakemake.cli import main, parse_args

for words, run in json.loads(sys.argv[1]):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = main([*words, "--dry-run", "--quiet", "host"]) if run else bool(not parse_args(words))
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, said.getvalue()]))
"""


def test_snakemake_accepts_these(folder):
    """All dry runs are made in one process, because most of their time is spent on imports."""
    asked = of("snakemake")
    env = {**os.environ}
    for _, setting in of("export"):
        name, _, place = setting.partition("=")
        (folder / Path(place).name).mkdir()
        env[name] = str(folder / Path(place).name)
    assert set(env) - set(os.environ) <= {"SNAKEMAKE_OUTPUT_CACHE"}
    given = json.dumps([(words[1:], not not_run(words)) for words in asked])
    done = subprocess.run(
        [sys.executable, "-c", DRY_RUNS, given], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    ends = [json.loads(line) for line in done.stdout.splitlines()]
    for words, (code, said) in zip(asked, ends, strict=True):
        assert not code, f"{shlex.join(words)}\n{said}"
    said_of = {shlex.join(words): said for words, (_, said) in zip(asked, ends, strict=True)}
    of_people = next(said for command, said in said_of.items() if "my.yaml" in command)
    assert "people" in of_people and "synthetic" not in of_people and jobs_of(of_people)["fit"] == 4
    of_doe = next(said for command, said in said_of.items() if " doe " in command)
    assert "results/tables/doe/table1.md" in of_doe and "results/tables/vfc/table2.md" not in of_doe
    jobs = jobs_of(of_doe)
    assert jobs["doe"] == 1 and not {"page", "scores", "board"} & set(jobs)


def options_of_ours():
    """Return the options of the command `fairclust` and of the benchmarks."""
    program = command_line()
    options = {"--help", "--help-all", "--version", "--install-completion"}
    for name in (command.__name__.lower() for group in COMMANDS.values() for command in group):
        options |= {
            name for argument in program[name].assemble_argument_collection() for name in argument.names
        }
    for script in (ROOT / "benchmarks").glob("*.py"):
        options |= {*re.findall(r'"(--[\w-]+)"', script.read_text())}
    return options


def test_options_named_without_a_command_exist():
    from snakemake.cli import get_argument_parser

    known = options_of_ours() | {*get_argument_parser()._option_string_actions}
    named = {span.split()[0] for page in PAGES for span in spans(page) if span.startswith("--")}
    assert named - known == set()


def evidence():
    """Return the commands that the papers' files name as evidence of reasons."""
    files = sorted((ROOT / "config/papers").glob("*.yaml"))
    papers = [paper for file in files for paper in yaml.safe_load(file.read_text())["papers"].values()]
    tables = [table for paper in papers for table in paper.get("tables", {}).values()]
    reasons = [reason for table in tables for reason in table.get("reasons", ())]
    return [shlex.split(reason["evidence"]) for reason in reasons if reason.get("evidence")]


def test_commands_of_evidence_can_be_run(capsys, plan):
    """Lines of Python are run. Scripts, their options and targets of Snakemake are only looked up."""
    targets = set(plan.targets())
    asked = list(map(list, dict.fromkeys(map(tuple, evidence()))))
    assert asked
    for words in asked:
        assert words[0] in ("python", "snakemake"), words
        if words[0] == "snakemake":
            assert words[-1] in targets, words
        elif words[1] == "-c":
            exec(words[2], {})
            assert capsys.readouterr().out.strip(), words
        else:
            assert_options_exist(words[1:])
