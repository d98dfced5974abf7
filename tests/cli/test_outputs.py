"""What commands write: never over what they read, completely or not at all, and safe to open."""

import errno
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import COMMAND, refused, run

from fairclust import methods
from fairclust.cli import main

N = 120


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the working folder, with a table, a model, and one Parquet file in a folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], N)
    frame = pd.DataFrame({"sex": sex, "x": rng.normal(size=N) + (sex == "f"), "y": rng.normal(size=N)})
    frame.to_csv("table.csv", index=False)
    (tmp_path / "parts").mkdir()
    frame.to_parquet("parts/0.parquet")
    assert main(["fit", "table.csv", *FIT, "--save", "model"]) == 0
    return tmp_path


FIT = ("--sensitive", "sex", "--n-clusters", "2", "--method", "kmeans")
FRONT = ("--sensitive", "sex", "--n-clusters", "2", "--methods", "kmeans", "--starts", "1")
COMMANDS = {
    "--out of fit": ("fit", "table.csv", *FIT, "--out"),
    "--save of fit": ("fit", "table.csv", *FIT, "--save"),
    "--save of parts": ("fit", "parts", *FIT, "--save"),
    "--out of predict": ("predict", "model", "table.csv", "--out"),
    "--out of front": ("front", "table.csv", *FRONT, "--out"),
    "--report of front": ("front", "table.csv", *FRONT, "--report"),
}


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_output_replaces_an_input(folder, capsys, name):
    command = COMMANDS[name]
    inputs = ["parts/0.parquet"] if command[1].startswith("parts") else command[1:3]
    other = folder / "other"
    before = content(folder)
    for read in [path for path in inputs if (folder / path).is_file()]:
        target = folder / read
        for given in [read, f"parts/../{read}", target, "soft", "hard"]:
            if given in ("soft", "hard"):
                (other.symlink_to if given == "soft" else other.hardlink_to)(target)
                given = other
            err = refused(run(capsys, *command, given))
            assert "is read and would be overwritten. Fix: name another file" in err
            other.unlink(missing_ok=True)
            assert content(folder) == before


def test_no_output_replaces_another_output_or_standard_input(folder, capsys):
    (folder / "hard").write_text("")
    (folder / "link").hardlink_to(folder / "hard")
    before = content(folder)
    for out, save in (("new", "./new"), ("new", "NEW"), ("link", "hard")):
        err = refused(run(capsys, "fit", "table.csv", *FIT, "--out", out, "--save", save))
        assert "--save: " in err and "is also the file of --out" in err
        assert content(folder) == before
    with (folder / "table.csv").open() as file:
        command = [*COMMAND, "fit", "-", *FIT, "--out", "table.csv"]
        done = subprocess.run(command, stdin=file, capture_output=True, text=True)
    assert done.returncode == 2 and "is the same file as standard input" in done.stderr
    assert content(folder) == before


def test_standard_output_is_that_of_the_command_and_not_of_compiled_code(folder):
    def shell(end):
        command = f"{shlex.join(COMMAND)} predict model table.csv --out {end}"
        return subprocess.run(["sh", "-c", command], capture_output=True, text=True)

    for out in ("log", "/dev/stdout"):
        assert f"--out: {out} is also the file of standard output" in shell(f"{out} > log").stderr
    assert shell("log 2> log").returncode == 2
    assert "--out: log is also the file of standard error" in (folder / "log").read_text()
    assert shell("/dev/stdout").stdout.startswith("row,cluster\n1,")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_place_that_cannot_be_written_is_named_before_the_fit(folder, capsys, monkeypatch, name):
    *command, option = COMMANDS[name]
    monkeypatch.setattr(
        "fairclust.base.FairClusterer._validate_params", lambda self: pytest.fail("the fit has begun")
    )
    (folder / "folder").mkdir()
    long = "n" * 300
    for path, message in (
        ("folder", "is a folder. Fix: name a file in it"),
        ("nowhere/it", "there is no folder nowhere. Fix: create it"),
        ("table.csv/it", "there is no folder table.csv"),
        (long, "File name too long"),
        (long[:240], "cannot be written: File name too long"),
    ):
        err = refused(run(capsys, *command, option, path))
        assert message in err and (option in err or "File name too long" in err), err
    kept = folder / "kept"
    kept.write_text("mine")
    monkeypatch.setattr(os, "access", lambda path, mode: "kept" not in str(path))
    assert "is write-protected" in refused(run(capsys, *command, option, kept))
    assert kept.read_text() == "mine"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_leaves_nothing_and_the_old_file(folder, capsys, monkeypatch, name):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (folder / "new").write_text("old")
    before = content(folder)
    monkeypatch.setattr(os, "fsync", full)
    status, _, err = run(capsys, *COMMANDS[name], "new")
    last = err.splitlines()[-1]
    assert status == 2 and last.startswith("fairclust ")
    assert "new" in last and "No space left on device" in last
    assert content(folder) == before


def test_devices_are_written_to_and_links_stay(folder, capsys):
    (folder / "link.csv").symlink_to(folder / "far.csv")
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert run(capsys, "predict", "model", "table.csv", "--out", "link.csv")[0] == 0
    assert run(capsys, "predict", "model", "table.csv", "--out", "pipe")[0] == 0
    written = os.read(reader, 1 << 16)
    os.close(reader)
    assert (folder / "link.csv").is_symlink() and (folder / "far.csv").read_bytes() == written
    assert (folder / "pipe").is_fifo()


def test_a_full_standard_output_is_an_error(folder):
    command = [*COMMAND, "predict", "model", "table.csv"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("fairclust predict: standard output cannot be")
    assert "No space left on device. Fix: free some space" in done.stderr and done.stderr.count("\n") == 1


def test_a_terminal_without_unicode_gets_the_whole_answer(folder):
    command = [*COMMAND, "methods"]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and all(f" {name} ".encode() in done.stdout for name in methods.__all__)
    assert done.stdout.isascii()


def test_lines_of_compiled_code_are_not_part_of_the_result(folder):
    code = (
        "import ctypes, sys, fairclust.cli.methods as methods\n"
        "listed = methods.run\n"
        "def run(args):\n"
        "    ctypes.CDLL(None).puts(b'a line of HiGHS')\n"
        "    return listed(args)\n"
        "methods.run = run\n"
        "from fairclust.cli import main\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code, "methods"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "a line of HiGHS\n"
    assert "KMeans" in done.stdout and "HiGHS\n" not in done.stdout


def test_long_names_are_cut_in_what_is_printed(folder, capsys):
    frame = pd.read_csv("table.csv")
    frame["sex"] = frame["sex"].replace("f", "f" * 900)
    frame.rename(columns={"x": "x" * 900}).to_csv("long.csv", index=False)
    _, text, _ = run(capsys, "fit", "long.csv", *FIT)
    assert "f" * 70 in text and "f" * 121 not in text and "x" * 121 not in text
    found = json.loads(run(capsys, "fit", "long.csv", *FIT, "--json")[1])
    assert "f" * 900 in found["groups"]
