"""Checks of a Workflow Run RO-Crate."""

import hashlib
import json
from datetime import datetime

CRATE = "ro-crate-metadata.json"


def references(value):
    """Yield the names of all entities that a value refers to."""
    if isinstance(value, dict):
        yield value["@id"]
    for item in value if isinstance(value, list) else ():
        yield from references(item)


def checked(folder):
    """Check the crate of a folder, and return its entities by name."""
    listed = json.loads((folder / CRATE).read_text())["@graph"]
    crate = {entity["@id"]: entity for entity in listed}
    assert len(crate) == len(listed), "two entities have one name"
    profiles = set()
    for entity in listed:
        for key, value in entity.items():
            named = set(references(value))
            profiles |= named if key == "conformsTo" else set()
            assert named <= {*crate, "https://w3id.org/ro/crate/1.1"}, f"{entity['@id']}: {key}"
    root, run = crate["./"], crate[root_run(crate)]
    assert crate[CRATE]["about"] == {"@id": "./"}
    assert {f"https://w3id.org/ro/wfrun/{kind}/0.5" for kind in ("process", "workflow")} <= profiles
    workflow = crate[root["mainEntity"]["@id"]]
    assert {"File", "SoftwareSourceCode", "ComputationalWorkflow"} == set(workflow["@type"])
    assert crate[workflow["programmingLanguage"]["@id"]]["name"] == "Snakemake"
    assert root["name"] and root["description"] and datetime.fromisoformat(root["datePublished"])
    assert run["@type"] == "CreateAction" and run["instrument"] == root["mainEntity"]
    assert datetime.fromisoformat(run["startTime"]) < datetime.fromisoformat(run["endTime"])
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    del files[CRATE]
    parts = set(references(root["hasPart"]))
    assert {part for part in parts if "://" not in part} == set(files)
    assert set(references(run["result"])) == set(files) - {workflow["@id"]}
    for name, path in files.items():
        assert crate[name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest(), name
        assert int(crate[name]["contentSize"]) == path.stat().st_size
    return crate


def root_run(crate):
    """Return the name of the run."""
    return crate["./"]["mentions"]["@id"]


def inputs_of(crate):
    """Return what the run has read: names to digests."""
    read = [crate[name] for name in references(crate[root_run(crate)]["object"])]
    return {entity["name"]: entity.get("sha256") or entity["value"] for entity in read}
