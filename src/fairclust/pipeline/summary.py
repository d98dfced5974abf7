"""The end of a run: what was done, what is missing and why, and what the pipeline itself cost."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairclust.pipeline.job import Job
from fairclust.pipeline.rule_inputs import RuleInputs


def describe(summary: Path) -> list[str]:
    """Lines for the terminal: counts, then one line per reason for missing cells."""
    found = json.loads(Path(summary).read_text())
    counts = ", ".join(f"{n} {status}" for status, n in sorted(found["by_status"].items()))
    lines = [f"{found['cells']} cells: {counts}"]
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for item in found["missing"]:
        at = (item["dataset"], item["status"], item["reason"])
        reasons.setdefault(at, []).append(f"{item['method']} ({item['cells']})")
    for (dataset, status, reason), methods in reasons.items():
        lines.append(f"  {status}: {dataset}, {', '.join(methods)}: {brief(reason)}")
        lines += [f"    {line}" for line in reason.splitlines()[1:] if line.startswith("Fix: ")]
    return lines


def brief(reason: str) -> str:
    """The first line of a reason, without the list of the places that were tried."""
    return reason.partition("\n")[0].removesuffix(" Tried:") or "no reason given"


def duration(seconds: float) -> str:
    """A duration in words, such as '2.5 hours'."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def job_seconds(benchmarks: Iterable[Path], began: float = 0.0) -> dict[str, float]:
    """Wall seconds of the jobs of each rule, from the files that `script` wrote since `began`."""
    found: dict[str, float] = {}
    for path in benchmarks:
        if path.stat().st_mtime < began:
            continue
        with path.open(newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                rule = path.relative_to(next(p for p in path.parents if p.name == "benchmarks")).parts[0]
                found[rule] = found.get(rule, 0.0) + float(row["s"])
    return found


def describe_times(runs: Path, benchmarks: Iterable[Path], began: float) -> list[str]:
    """What this run, which began at a time in seconds since the epoch, spent on fits, and what the pipeline added."""
    from fairclust.pipeline.scores import read_table

    frame = read_table(runs)
    fitted = frame[frame.finished >= began]
    fit = float(fitted.wall_seconds.sum())
    jobs = sum(job_seconds(benchmarks, began).values())
    added = max(0.0, jobs - fit)
    # Of fits of a few seconds, the share would be thousands of per cent and say nothing.
    share = f" ({added / fit:.0%} of the fitting time)" if added < fit else ""
    return [
        f"{len(fitted)} cells fitted in this run, {len(frame) - len(fitted)} taken as they were",
        f"fitting {fit:.1f} s; starting, compiling, reading, scoring and drawing {added:.1f} s{share}; "
        f"from start to end {time.time() - began:.1f} s",
    ]


def closing_words(inputs: RuleInputs, began: float) -> list[str]:
    """Lines to print when a run has ended."""
    results = inputs.place
    if not (results / "summary.json").is_file():
        return []
    lines = describe(results / "summary.json")
    lines += describe_times(results / "scores/runs.parquet", results.glob("benchmarks/**/*.tsv"), began)
    lines.append(f"scores:  {results}/scores/scores.csv (and .parquet; costs of the cells in runs.csv)")
    if inputs.table_files():
        lines.append(f"tables:  {results}/tables/ (Markdown, CSV and LaTeX)")
    if n_figures := sum(len(of["figures"]) for of in inputs.shown.values()):
        count = "one figure" if n_figures == 1 else f"{n_figures} figures"
        lines.append(f"figures: {results}/figures/ ({count})")
    if inputs.config.report.html:
        lines.append(f"report:  {results}/report/index.html (to share: {results}/report.zip)")
    return lines


def check(job: Job) -> None:
    """What the rule `check` does: it sets the exit status of the run."""
    problems = [line for path in job.input.get("problems", []) for line in json.loads(Path(path).read_text())]
    require_complete(Path(job.input["summary"][0]), problems, strict=job.params["strict"])


def require_complete(summary: Path, problems: Sequence[str] = (), *, strict: bool) -> None:
    """Raise if no cell is ok, cells were lost with their jobs, or tables or figures could not be made (`problems`).

    With `strict`, raise if any cell is not ok.
    """
    found = json.loads(summary.read_text())
    if found["cells"] and not found["by_status"].get("ok"):
        why = "no cell is ok, so the results are empty"
    elif any(item["lost"] for item in found["missing"]):
        why = (
            "some fit jobs have failed. To try them again, run the same command again; finished fits are kept"
        )
    elif strict and found["missing"]:
        why = "strict: true, and not every cell is ok"
    elif problems:
        raise RuntimeError("\n".join(["some tables or figures could not be made", *problems]))
    else:
        return
    raise RuntimeError("\n".join([why, *describe(summary), *problems]))
