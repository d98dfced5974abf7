"""The published results as a Workflow Run RO-Crate: what was run, on which inputs, with which outputs.

Programs read the file `ro-crate-metadata.json`, see https://w3id.org/ro/wfrun/workflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from fairclust.datasets.digest import content_digest
from fairclust.pipeline.prepare_jobs import read_record
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


def run_crate(folder: Path, origin: Mapping[str, Any], inputs: RuleInputs) -> dict[str, Any]:
    """Describe published results.

    Parameters
    ----------
    folder : Path
        The published files, with `WORKFLOW` among them.
    origin : mapping
        What `provenance.json` holds.
    inputs : RuleInputs
        The run.

    Returns
    -------
    dict
        JSON-LD. Authors and licence are those of `CITATION.cff` in the working folder, if there is one.
    """
    cited = Path("CITATION.cff")
    about = yaml.safe_load(cited.read_text(encoding="utf-8")) if cited.is_file() else {}
    authors = [
        {
            "@id": f"#author-{i}",
            "@type": "Organization" if "name" in author else "Person",
            "name": _name(author),
        }
        for i, author in enumerate(about.get("authors", ()))
    ]
    costs = read_table(folder / "scores" / "runs.parquet")
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
        for name in filter(None, [about.get("license")])
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
    entities = [
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
    graph = [root, *entities, run, *authors, *licences, *files, *sources, *software]
    return {
        "@context": _CONTEXT,
        "@graph": [{key: value for key, value in entity.items() if value} for entity in graph],
    }


def _ids(entities: list[dict[str, Any]]) -> Any:
    """References to entities; a single one stands alone, as the specification asks."""
    found = [{"@id": entity["@id"]} for entity in entities]
    return found[0] if len(found) == 1 else found


def _name(author: Mapping[str, str]) -> str:
    return author.get("name") or f"{author['given-names']} {author['family-names']}"


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
    """The files that the run has read: downloads by their address, and the user's own files by name and digest."""
    found: dict[str, dict[str, Any]] = {}
    for folder in map(Path, inputs.sources()):
        spec, record = inputs.source_params(folder.name), read_record(folder)
        if record["status"] == "ok" and spec["urls"]:
            name = "#".join(filter(None, (spec["urls"][0], spec["member"])))
            about = {"name": folder.name, "sha256": record["sha256"], "license": spec["licence"]}
            found[name] = {"@id": name, "@type": "File", **about}
    for path in dict.fromkeys(inputs.files_of_the_user()):
        name = f"#input-{len(found)}"
        value = f"sha256:{content_digest(path)}"
        found[name] = {"@id": name, "@type": "PropertyValue", "name": Path(path).name, "value": value}
    return list(found.values())
