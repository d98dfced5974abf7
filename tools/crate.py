"""The published results as a Workflow Run RO-Crate: what was run, on which inputs, with which outputs.

Programs read the file `ro-crate-metadata.json`, see https://w3id.org/ro/wfrun/workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from fairclust.datasets.store import read_card
from fairclust.messages import UserError
from fairclust.outputs import content_digest
from fairclust.pipeline.plan import Plan
from fairclust.pipeline.scores import read_arrow

CRATE = "ro-crate-metadata.json"
WORKFLOW = "workflow/Snakefile"
_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"]
_WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    _WORKFLOW_CRATE: ("Workflow RO-Crate", "1.0"),
}
_FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".png": "image/png",
}


class _Graph(list[dict[str, Any]]):
    """The entities of a crate."""

    def add(self, name: str, kind: str | list[str], /, **about: Any) -> dict[str, str]:
        """Add an entity, unless there is one of this name, and return a reference to it."""
        if all(entity["@id"] != name for entity in self):
            known = {key: value for key, value in about.items() if value}
            self.append({"@id": name, "@type": kind, **known})
        return {"@id": name}


def _refs(found: list[dict[str, str]]) -> Any:
    """References to entities; a single one stands alone, as the specification asks."""
    return found[0] if len(found) == 1 else found


def run_crate(folder: Path, origin: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """Describe published results, the files of `folder` with `WORKFLOW` among them, as JSON-LD.

    `origin` is the content of `provenance.json`. Authors and licence are those of `CITATION.cff` in the working
    folder, if there is one. UserError if no cell of the run was fitted, or `CITATION.cff` cannot be read.
    """
    costs = read_arrow(folder / "scores" / "runs.parquet").to_pandas()
    if costs.finished.isna().all():
        raise UserError("no cell of the run was fitted, so there is nothing to publish")
    began, ended = (costs.finished - costs.wall_seconds).min(), costs.finished.max()
    graph = _Graph()
    authors, licences = _add_citation(graph, Path("CITATION.cff"))
    needs = _add_software(graph, origin["versions"])
    profiles = [
        graph.add(profile, "CreativeWork", name=name, version=version)
        for profile, (name, version) in _PROFILES.items()
    ]
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != CRATE)
    workflow = _add_file(
        graph,
        folder / WORKFLOW,
        folder,
        ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        name="fairclust",
        version=origin["git_commit"],
        **needs,
    )
    results = [_add_file(graph, path, folder) for path in paths if path != folder / WORKFLOW]
    sources = _add_sources(graph, plan)
    digest = {"name": "digest of the configuration", "value": origin["config"]["digest"]}
    configuration = graph.add("#configuration", "PropertyValue", **digest)
    stated = ", ".join(plan.config.papers[name].short_name for name in plan.config.run.papers)
    graph.add(
        "./",
        "Dataset",
        name="Results of a run of fairclust",
        description=f"Scores, tables and figures ({stated or 'no paper'}). {origin['summary'][0]}.",
        datePublished=_time(ended)[:10],
        license=_refs(licences),
        author=_refs(authors),
        conformsTo=profiles,
        hasPart=[workflow, *results, *(source for source in sources if source["@id"][0] != "#")],
        mainEntity=workflow,
        mentions={"@id": "#run"},
    )
    graph.add(
        "#run",
        "CreateAction",
        name="A run of the workflow",
        description=f"On {origin['platform']}, {origin['cpu_count']} processors, Python {origin['python']}.",
        startTime=_time(began),
        endTime=_time(ended),
        actionStatus="http://schema.org/CompletedActionStatus",
        agent=_refs(authors),
        instrument=workflow,
        object=[*sources, configuration],
        result=_refs(results),
    )
    written_as = [{"@id": "https://w3id.org/ro/crate/1.1"}, {"@id": _WORKFLOW_CRATE}]
    graph.add(CRATE, "CreativeWork", about={"@id": "./"}, conformsTo=written_as)
    return {"@context": _CONTEXT, "@graph": graph}


def _add_citation(graph: _Graph, path: Path) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The authors and the licences of a `CITATION.cff`; none if there is no such file."""
    try:
        about = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}. Fix: correct it, or move it away") from None
    about = about if isinstance(about, dict) else {}
    authors = []
    for i, author in enumerate(about.get("authors") or ()):
        kind = "Organization" if "name" in author else "Person"
        names = (str(author.get(key, "")) for key in ("given-names", "family-names"))
        authors.append(graph.add(f"#author-{i}", kind, name=author.get("name") or " ".join(names)))
    names = about.get("license") or []
    licences = [
        graph.add(f"https://spdx.org/licenses/{name}", "CreativeWork", name=name)
        for name in ([names] if isinstance(names, str) else names)
    ]
    return authors, licences


def _add_software(graph: _Graph, versions: Mapping[str, str]) -> dict[str, Any]:
    """What the workflow needs: packages of these versions, and the language in which it is written."""
    packages = [
        graph.add(page, "SoftwareApplication", url=page, name=name, softwareVersion=version)
        for name, version in versions.items()
        for page in [f"https://pypi.org/project/{name}/{version}/"]
    ]
    language = graph.add(
        "https://w3id.org/workflowhub/workflow-ro-crate#snakemake",
        "ComputerLanguage",
        name="Snakemake",
        url="https://snakemake.github.io",
        version=versions["snakemake"],
    )
    return {"programmingLanguage": language, "softwareRequirements": _refs(packages)}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _add_file(
    graph: _Graph, path: Path, folder: Path, kind: str | list[str] = "File", /, **more: Any
) -> dict[str, str]:
    return graph.add(
        path.relative_to(folder).as_posix(),
        kind,
        **more,
        contentSize=str(path.stat().st_size),
        encodingFormat=_FORMATS.get(path.suffix, "text/plain"),
        sha256=content_digest(path),
    )


def _add_sources(graph: _Graph, plan: Plan) -> list[dict[str, str]]:
    """What the run has read: downloads by their address, and the user's own files by name and digest."""
    own: dict[str, str] = {}
    found = []
    for dataset in sorted(plan.datasets):
        for source in read_card(f"{plan.results}/data/prepared/{dataset}").get("sources", ()):
            if source.get("urls"):
                address = "#".join(filter(None, (source["urls"][0], source["member"])))
                about = {"name": source["name"], "sha256": source["sha256"], "license": source["licence"]}
                found.append(graph.add(address, "File", **about))
            else:
                own[Path(source.get("file", source["name"])).name] = source["sha256"]
    for paper in plan.config.run.papers:
        own |= {Path(path).name: content_digest(path) for path in plan.config.papers[paper].files}
    found += [
        graph.add(f"#input-{i}", "PropertyValue", name=name, value=f"sha256:{digest}")
        for i, (name, digest) in enumerate(own.items())
    ]
    return list({entity["@id"]: entity for entity in found}.values())
