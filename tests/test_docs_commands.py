"""Every command of the documentation: run where it can be; else its program, files and options are known."""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from fairclust import cli
from fairclust.pipeline.config import laid_over
from working_folder import Project

ROOT = Path(__file__).parents[1]
PAGES = [
    page
    for folder in ("", "docs", "config", "benchmarks", "results")
    for page in sorted((ROOT / folder).glob("*.md"))
    if page.name != "CHANGELOG.md"  # which speaks of the past
]
BLOCK = re.compile(r"^ *```(.*?)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
PROGRAMS = ("make", "snakemake", "fairclust", "python", "conda", "pip", "docker", "apptainer")

# What is not run, though its options are parsed. Everything else is, or the test fails.
NOT_RUN = {
    "fairclust merge": "needs two runs: tests/workflow/test_workflow.py merges them",
    "snakemake --report": "needs a run: tests/workflow/test_workflow.py makes one of it",
}


def commands(page):
    """The commands of a page's blocks, continued lines joined, as words."""
    for language, text in BLOCK.findall(page.read_text()):
        if language == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                if words := shlex.split(line, comments=True):
                    yield words


def spans(page):
    """The text between single backticks."""
    text = BLOCK.sub("", page.read_text())
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def inline(page):
    """The commands within a page's sentences."""
    for span in spans(page):
        if span.split()[0] in PROGRAMS and " " in span:
            yield shlex.split(span)


EVERY = [(page, words) for page in PAGES for words in (*commands(page), *inline(page))]


def of(program, found=EVERY):
    return [words for _, words in found if words[0] == program]


def test_blocks_are_in_languages_that_are_tested():
    for page in PAGES:
        assert {language for language, _ in BLOCK.findall(page.read_text())} <= {"sh", "python", "yaml"}, page


def test_every_command_is_of_a_known_kind():
    known = {*PROGRAMS, "export", "."}
    assert [words for _, words in EVERY if words[0] not in known] == []
    for start in NOT_RUN:
        assert any(" ".join(words).startswith(start) for _, words in EVERY), f"{start} is in no page any more"


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


def test_environments_and_packages_are_there(root):
    environment = yaml.safe_load((root / "environment.yml").read_text())
    for _, *words in of("conda"):
        if words[0] == "activate":
            assert words[1:] == [environment["name"]]
        else:
            assert words == ["env", "create", "-f", "environment.yml"]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    listed = {re.split(r"[<>=]", line)[0] for group in extras.values() for line in group}
    for _, *words in of("pip"):
        assert words[0] == "install"
        assert set(words[1:]) <= listed


def test_images_are_built_of_files_that_are_there_and_saved_before_they_are_converted(root):
    saved = set()
    for _, action, *words in of("docker"):
        if action == "build":
            assert (root / words[words.index("--file") + 1]).is_file()
        elif action == "save":
            saved.add(words[words.index("--output") + 1])
    for _, action, *words in of("apptainer"):
        if action == "build":
            assert words[1].removeprefix("docker-archive:") in saved


def test_scripts_have_these_options(root):
    for _, script, *words in of("python"):
        text = (root / script).read_text()
        for option in (word for word in words if word.startswith("-")):
            assert f'"{option}"' in text, f"{script} {option}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder as after a clone, but with little to run, and with the files that the pages speak of."""
    folder = tmp_path_factory.mktemp("clone")
    project = Project(folder)
    for name in ("Snakefile", "workflow", "profiles"):
        (folder / name).symlink_to(ROOT / name)
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(200, 2)), columns=["age", "income"])
    people.assign(sex=rng.choice(["f", "m"], 200)).to_csv(folder / "people.csv", index=False)
    # The README's data set and method, laid over.
    mine = {}
    for language, text in BLOCK.findall((ROOT / "README.md").read_text()):
        if language == "yaml":
            mine = laid_over(mine, yaml.safe_load(text))
    project.write("my.yaml", yaml.safe_dump(mine))
    project.config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    project.config["run"] = {"datasets": ["toy_blobs"], "methods": ["kmeans"], "seeds": 2}
    project.write("config/config.yaml", yaml.safe_dump(project.config))
    return folder


def test_fairclust_runs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    ran = of("fairclust")
    assert len(ran) > 5
    for words in ran:
        arguments = words[1:]
        if not_run(words):
            cli._parser().parse_args(arguments)
        else:
            try:
                code = cli.main([word.lower() if word == "NAME" else word for word in arguments])
            except SystemExit as end:
                code = end.code
            assert not code, f"{shlex.join(words)}: {capsys.readouterr().err}"
    assert (folder / "labels.csv").is_file()
    assert (folder / "my_methods/name.py").is_file()


DRY_RUNS = """
import contextlib, io, json, sys
from snakemake.cli import main, parse_args

for words, run in json.loads(sys.argv[1]):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = main([*words, "--dry-run"]) if run else bool(not parse_args(words))
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, said.getvalue()]))
"""


def test_snakemake_accepts_these(folder):
    """One process for all of them: most of a dry run is imports."""
    asked = of("snakemake")
    asked += [["snakemake", "--cores", "1", *shlex.split(span)] for span in shared_options()]
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
    of_my_yaml = next(said for words, (_, said) in zip(asked, ends, strict=True) if "my.yaml" in words)
    assert "people" in of_my_yaml and "toy_blobs" not in of_my_yaml


def shared_options():
    """Options of Snakemake with a value, that pages name without the command."""
    ours = {option for option, _ in options_of_ours()}
    found = [span for page in PAGES for span in spans(page) if span.startswith("--") and " " in span]
    return [span for span in found if span.split()[0] not in ours]


def options_of_ours():
    """Options of the command `fairclust` and of the benchmarks, and where they are."""
    subparsers = next(a for a in cli._parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, parser in subparsers.choices.items():
        yield from ((option, name) for option in parser._option_string_actions)
    for script in (ROOT / "benchmarks").glob("*.py"):
        yield from ((option, script.name) for option in re.findall(r'"(--[\w-]+)"', script.read_text()))


def test_options_named_alone_are_somewhere():
    from snakemake.cli import get_argument_parser

    known = {option for option, _ in options_of_ours()} | {*get_argument_parser()._option_string_actions}
    for page in PAGES:
        for span in spans(page):
            if span.startswith("--") and " " not in span:
                assert span in known, f"{page.name}: {span}"
