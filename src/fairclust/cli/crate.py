"""The published results as a Workflow Run RO-Crate: what was run, on which inputs, with which outputs.

Programs read the file `ro-crate-metadata.json`, see https://w3id.org/ro/wfrun/workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from fairclust.cli import CommandError
from fairclust.datasets.digest import content_digest
from fairclust.datasets.store import read_card
from fairclust.pipeline.blocks import plan_blocks
from fairclust.pipeline.config import as_list
from fairclust.pipeline.rule_inputs import RuleInputs
from fairclust.pipeline.scores import read_table

CRATE = "ro-crate-metadata.json"
WORKFLOW = "workflow/Snakefile"
_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"]
_CRATE_1_1, _WORKFLOW_CRATE = (
    "https://w3id.org/ro/crate/1.1",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
)
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
_OF_CARD = {"name": "name", "sha256": "sha256", "license": "licence"}


def run_crate(folder: Path, origin: Mapping[str, Any], inputs: RuleInputs) -> dict[str, Any]:
    """Describe published results, the files of `folder` with `WORKFLOW` among them, as JSON-LD.

    `origin` is the content of `provenance.json`. Authors and licence are those of `CITATION.cff` in the working
    folder, if there is one. CommandError if no cell of the run was fitted, or `CITATION.cff` cannot be read.
    """
    about = _citation(Path("CITATION.cff"))
    authors = [
        {
            "@id": f"#author-{i}",
            "@type": "Organization" if "name" in author else "Person",
            "name": _name(author),
        }
        for i, author in enumerate(about.get("authors") or ())
    ]
    costs = read_table(folder / "scores" / "runs.parquet")
    if costs.finished.isna().all():
        raise CommandError("no cell of the run was fitted, so there is nothing to publish")
    began, ended = (costs.finished - costs.wall_seconds).min(), costs.finished.max()
    files = [
        _published(path, folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != CRATE
    ]
    sources = [
        *_sources(inputs),
        {
            "@id": "#configuration",
            "@type": "PropertyValue",
            "name": "digest of the configuration",
            "value": origin["config"]["digest"],
        },
    ]
    software = [
        {"@id": page, "url": page, "@type": "SoftwareApplication", "name": name, "softwareVersion": version}
        for name, version in origin["versions"].items()
        for page in [f"https://pypi.org/project/{name}/{version}/"]
    ]
    licences = [
        {"@id": f"https://spdx.org/licenses/{name}", "@type": "CreativeWork", "name": name}
        for name in as_list(about.get("license"))
    ]
    workflow = next(file for file in files if file["@id"] == WORKFLOW)
    workflow |= {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "fairclust",
        "version": origin["git_commit"],
        "programmingLanguage": {"@id": "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"},
        "softwareRequirements": _ids(software),
    }
    stated = ", ".join(inputs.config.papers[name].short_name for name in inputs.config.run.papers)
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": "Results of a run of fairclust",
        "description": f"Scores, tables and figures ({stated or 'no paper'}). {origin['summary'][0]}.",
        "datePublished": _time(ended)[:10],
        "license": _ids(licences),
        "author": _ids(authors),
        "conformsTo": [{"@id": profile} for profile in _PROFILES],
        "hasPart": _ids([*files, *(source for source in sources if source["@type"] == "File")]),
        "mainEntity": {"@id": WORKFLOW},
        "mentions": {"@id": "#run"},
    }
    run = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": "A run of the workflow",
        "description": f"On {origin['platform']}, {origin['cpu_count']} processors, Python {origin['python']}.",
        "startTime": _time(began),
        "endTime": _time(ended),
        "actionStatus": "http://schema.org/CompletedActionStatus",
        "agent": _ids(authors),
        "instrument": {"@id": WORKFLOW},
        "object": _ids(sources),
        "result": _ids([file for file in files if file is not workflow]),
    }
    entities: list[dict[str, Any]] = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": [{"@id": _CRATE_1_1}, {"@id": _WORKFLOW_CRATE}],
        },
        *(
            {"@id": profile, "@type": "CreativeWork", "name": name, "version": version}
            for profile, (name, version) in _PROFILES.items()
        ),
        {
            "@id": "https://w3id.org/workflowhub/workflow-ro-crate#snakemake",
            "@type": "ComputerLanguage",
            "name": "Snakemake",
            "url": "https://snakemake.github.io",
            "version": origin["versions"]["snakemake"],
        },
    ]
    graph: list[dict[str, Any]] = [root, *entities, run, *authors, *licences, *files, *sources, *software]
    return {
        "@context": _CONTEXT,
        "@graph": [{key: value for key, value in entity.items() if value} for entity in graph],
    }


def _ids(entities: list[dict[str, Any]]) -> Any:
    """References to entities; a single one stands alone, as the specification asks."""
    found = [{"@id": entity["@id"]} for entity in entities]
    return found[0] if len(found) == 1 else found


def _citation(path: Path) -> dict[str, Any]:
    """The content of a `CITATION.cff`; empty if there is none."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}. Fix: correct it, or move it away") from None
    return found if isinstance(found, dict) else {}


def _name(author: Mapping[str, str]) -> str:
    return author.get("name") or " ".join(str(author.get(key, "")) for key in ("given-names", "family-names"))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _published(path: Path, folder: Path) -> dict[str, Any]:
    return {
        "@id": path.relative_to(folder).as_posix(),
        "@type": "File",
        "contentSize": str(path.stat().st_size),
        "encodingFormat": _FORMATS.get(path.suffix, "text/plain"),
        "sha256": content_digest(path),
    }


def _sources(inputs: RuleInputs) -> list[dict[str, Any]]:
    """What the run has read: downloads by their address, and the user's own files by name and digest."""
    own: dict[str, str] = {}
    found: list[dict[str, Any]] = []
    for folder in sorted(
        {f"{inputs.results}/data/prepared/{block.dataset}" for block in plan_blocks(inputs.config)}
    ):
        for source in read_card(folder).get("sources", ()):
            if source.get("urls"):
                address = "#".join(filter(None, (source["urls"][0], source["member"])))
                about = {key: source[value] for key, value in _OF_CARD.items()}
                found.append({"@id": address, "@type": "File", **about})
            else:
                own[Path(source.get("file", source["name"])).name] = source["sha256"]
    for paper in inputs.config.run.papers:
        own |= {Path(path).name: content_digest(path) for path in inputs.reported_files(paper)}
    found += [
        {"@id": f"#input-{i}", "@type": "PropertyValue", "name": name, "value": f"sha256:{digest}"}
        for i, (name, digest) in enumerate(own.items())
    ]
    return list({entity["@id"]: entity for entity in found}.values())
