"""Where a result comes from: versions, commit, machine."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fairclust import __version__

_PACKAGES = ("fairclust", "numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow", "snakemake")


@cache
def git_commit() -> str:
    """The commit of this package's checkout, with '+' if tracked files are changed; outside git the version."""
    try:
        _git("ls-files", "--error-unmatch", __file__)  # the checkout could be another project's
        changed = _git("status", "--porcelain", "--untracked-files=no")
        return _git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return f"version {__version__}"


@cache
def commit_date() -> str:
    """The day of that commit, such as 2026-11-28; empty outside git."""
    return "" if git_commit().startswith("version") else _git("show", "--no-patch", "--format=%cs", "HEAD")


def _git(*arguments: str) -> str:
    command = ("git", "-C", str(Path(__file__).parent), *arguments)
    return subprocess.check_output(command, stderr=subprocess.DEVNULL, text=True, timeout=20).strip()


@cache
def installed_version(package: str) -> str:
    """Version of a package, or 'not installed'."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def package_versions() -> dict[str, str]:
    """Installed versions of the packages that can change a number."""
    return {package: installed_version(package) for package in _PACKAGES}


def provenance() -> dict[str, Any]:
    """Plain record of program versions and machine; no names of users or hosts."""
    return {
        "git_commit": git_commit(),
        "commit_date": commit_date(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "instructions": os.environ.get("NUMBA_CPU_NAME", "those of the machine"),
        "cpu_count": os.cpu_count(),
        "versions": package_versions(),
    }
