"""The lists of dependencies agree, and the conda environment and the container have the locked versions."""

import re
import tomllib

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fairclust.pipeline.config import load_config
from fairclust.pipeline.plan import Plan
from small import shipped_in

PYTHON_OF_DEBIAN = {"bookworm": "3.11", "trixie": "3.13"}


def dependencies(root, extras=("pipeline",)):
    """Return the dependencies of the package and of some of its extras. An extra can name other extras."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    found = set(project["dependencies"])
    for extra in extras:
        for line in project["optional-dependencies"][extra]:
            own = re.fullmatch(r"fairclust\[(.*)\]", line)
            found |= dependencies(root, own[1].split(",")) if own else {line}
    return found


def test_the_conda_environment_for_people_agrees_with_pyproject(root):
    listed = yaml.safe_load((root / "environment.yml").read_text())["dependencies"]
    plain = {line.replace(" ", "") for line in listed if isinstance(line, str)}
    assert plain - {"python>=3.11", "pip"} == dependencies(root, ("dask", "pipeline"))


def test_lock_pins_every_dependency_and_names_no_host(root):
    text = (root / "requirements.lock").read_text()
    assert "://" not in text
    pinned = {canonicalize_name(line.partition("==")[0]) for line in text.splitlines() if "==" in line}
    wanted = {canonicalize_name(re.split(r"[<>=\[ ]", line)[0]) for line in dependencies(root, ("dev",))}
    assert wanted <= pinned


def locked(root, python):
    """Package to version, for a version of Python."""
    found = {}
    for line in (root / "requirements.lock").read_text().splitlines():
        if "==" in line and not line.startswith("#"):
            requirement = Requirement(line)
            marker = {"python_version": python, "python_full_version": f"{python}.0"}
            if requirement.marker is None or requirement.marker.evaluate(marker):
                found[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix("==")
    return found


def test_the_conda_environment_pins_what_the_lock_pins(root):
    listed = yaml.safe_load((root / "workflow/envs/fairclust.yml").read_text())["dependencies"]
    pins = {canonicalize_name(name): version for name, version in (line.split("=") for line in listed)}
    python = pins.pop("python")
    versions = locked(root, python)
    named = {canonicalize_name(re.split(r"[<>=\[ ]", line)[0]) for line in dependencies(root)}
    # For most packages conda does not have the post-releases of PyPI.
    wanted = {name: re.sub(r"\.post\d+$", "", versions[name]) for name in named}
    assert pins == wanted, "workflow/envs/fairclust.yml and requirements.lock differ"


def test_the_container_installs_the_lock_and_finds_what_it_copies(root):
    folder = root / "workflow" / "container"
    lines = (folder / "Dockerfile").read_text().splitlines()
    copied = [word for line in lines if line.startswith("COPY") for word in line.split()[1:-1]]
    let_in = (folder / "Dockerfile.dockerignore").read_text().splitlines()
    for name in copied:
        assert (root / name).exists(), name
        assert f"!{name}" in let_in, f"{name} is not in the context of the build"
    assert "requirements.lock" in copied
    text = "\n".join(lines).replace("\\\n", " ")
    for options in re.findall(r"pip install (.*)", text):
        locked_only = "--requirement /opt/fairclust/requirements.lock" in options
        assert locked_only or "--no-deps" in options, f"pip install {options} ignores requirements.lock"
    base = re.search(r"^ARG BASE=.*debian:(\w+)", text, flags=re.MULTILINE)[1]
    python = yaml.safe_load((root / "workflow/envs/fairclust.yml").read_text())["dependencies"][0]
    assert f"python={PYTHON_OF_DEBIAN[base]}" == python, (
        "the image and conda use different versions of Python"
    )
    for path in re.findall(r"/opt/fairclust/([\w/]+)\"", text):
        assert (root / path).exists(), path


def test_the_image_of_the_workflow_is_the_one_that_the_documentation_builds(root):
    image = re.search(r'^container: "(.*)"$', (root / "workflow/Snakefile").read_text(), flags=re.MULTILINE)[
        1
    ]
    assert f"apptainer build {image} " in (root / "docs/cluster.md").read_text()


def test_the_run_of_continuous_integration_is_small_and_needs_no_download(root):
    plan = Plan(load_config(shipped_in(root / ".test")))
    assert plan.source_folders(*plan.datasets) == []
    assert 0 < sum(len(fit.cells()) for fit in plan.fits.values()) < 100
