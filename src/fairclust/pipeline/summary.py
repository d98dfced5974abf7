"""What a person reads of a run: what is missing and why, whether it is complete, and which fits are still to make."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.datasets.store import read_card
from fairclust.messages import brief, count, in_words
from fairclust.pipeline.plan import Fit, Plan


def describe(summary: Mapping[str, Any]) -> list[str]:
    """Lines for the terminal: counts, then one line per reason for missing cells."""
    lines = [f"{count(summary['cells'], 'fit')}: {in_words(summary['by_status'])}"]
    reasons: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for item in summary["missing"]:
        reasons[item["dataset"], item["status"], item["reason"]][item["method"]] += item["cells"]
    for (dataset, status, reason), methods in reasons.items():
        counts = ", ".join(f"{method} ({cells})" for method, cells in methods.items())
        lines.append(f"  {status}: {dataset}, {counts}: {brief(reason)}")
        lines += [f"    {line}" for line in reason.splitlines()[1:] if line.startswith("Fix: ")]
    return lines


def require_complete(summary: Mapping[str, Any], *, strict: bool) -> None:
    """RuntimeError if no cell is ok, or cells were lost with their jobs; with `strict`, if any cell is not ok."""
    lost = {
        f"fits/{item['dataset']}/" + ".".join(filter(None, (item["method"], item["sweep"], "parquet")))
        for item in summary["missing"]
        if item["lost"]
    }
    if summary["cells"] and not summary["by_status"].get("ok"):
        why = "no cell is ok, so the results are empty"
    elif lost:
        jobs = " ".join(sorted(lost))
        why = f"some fit jobs have failed. Fix: delete {jobs} in the results and run again; finished fits are kept"
    elif strict and summary["missing"]:
        why = "strict: true, and not every cell is ok"
    else:
        return
    raise RuntimeError("\n".join([why, *describe(summary)]))


def fits_to_make(plan: Plan, fit: Fit, place: Path, outdated: Collection[Path] = ()) -> set[str]:
    """The keys of the fits of a job that the cache does not have; the results are in the folder `place`.

    These are all fits if the data set, or its graph, is missing or `outdated`, because it will then be made first.
    """
    from fairclust.pipeline.fits import cached_keys, input_hash

    inputs = {of: place / Path(path).relative_to(plan.results) for of, path in plan.fit_inputs(fit).items()}
    data_hash = ""
    try:
        if not any(path in outdated for path in inputs.values()):
            data_hash = input_hash(read_card(inputs["data"]), inputs.get("graph"))
    except (DatasetSkipped, KeyError):  # a data set that was skipped has no hash
        return set()
    except (OSError, DatasetError):
        pass
    code = {"class_path": plan.method(fit).class_, "code": plan.fit_code(fit)}
    keys = {cell.key(data_hash=data_hash or fit.dataset, **code) for cell in fit.cells()}
    return keys.difference(cached_keys(place / "cache", keys)) if data_hash else keys
