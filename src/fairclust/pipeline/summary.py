"""What a person reads of a run: what is missing and why, and whether it is complete."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from fairclust.messages import brief, count, in_words


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
