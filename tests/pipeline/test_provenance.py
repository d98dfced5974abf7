"""Where a result comes from, in a checkout and outside."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fairclust

SHOW = "from fairclust.pipeline.provenance import git_commit; print(git_commit())"


def shown(folder=None, **environment):
    """What a process says of its version, with other variables and in a folder."""
    command = [sys.executable, "-c", SHOW]
    return subprocess.check_output(command, env={**os.environ, **environment}, cwd=folder, text=True)


def test_outside_its_checkout_the_version_is_that_of_the_package(tmp_path):
    """This is so in the container, and in a virtual environment inside another repository, such as this one."""
    package = Path(fairclust.__file__).parent
    shutil.copytree(package, tmp_path / "src/fairclust", ignore=shutil.ignore_patterns("__pycache__"))
    author = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, env={**os.environ, **author})
    assert shown(tmp_path, PYTHONPATH=str(tmp_path / "src")) == f"version {fairclust.__version__}\n"


def test_in_a_checkout_the_version_is_the_commit():
    if not (Path(fairclust.__file__).parents[2] / ".git").exists():
        pytest.skip("no checkout")
    assert re.fullmatch(r"[0-9a-f]{40}\+?\n", shown())
