"""What happens when Snakemake's main process starts a run, ends it well, or ends it with failed jobs.

At the end it says what was done, what is missing and why, and what the pipeline itself cost.

The handlers `onsuccess` and `onerror` only print. A workflow that uses this one as a module does not call them.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairclust.messages import brief, count, duration, in_words
from fairclust.pipeline import import_server
from fairclust.pipeline.blocks import estimated_minutes
from fairclust.pipeline.job import Job, forced_since, remember_forced
from fairclust.pipeline.results_folder import (
    forget_failures,
    lock,
    mend_time_stamps,
    remove_damaged_metadata,
    tidy,
)
from fairclust.pipeline.rule_inputs import RuleInputs


class RunEvents:
    """The beginning and the end of one Snakemake process, which began at a time in seconds since the epoch."""

    def __init__(self, workflow: Any, inputs: RuleInputs, began: float, *, cache: bool) -> None:
        self._workflow = workflow
        self._inputs = inputs
        self._began = began
        self._server: Any = None
        self._cache = cache
        self._lock: Any = None
        if workflow.is_main_process and workflow.output_settings.dryrun:
            # Snakemake calls no handler at the end of a dry run.
            atexit.register(self._say_work)

    def begin(self) -> None:
        """Begin a run: lock and tidy the results, copy damaged outputs, and start the import server.

        Rules call this while Snakemake builds the graph of jobs. It does nothing a second time, in the processes of
        jobs, or where Snakemake only shows something and has no executor.
        """
        workflow = self._workflow
        remember_forced(workflow)
        running = workflow.is_main_process and workflow.executor_plugin is not None
        if not running or workflow.dryrun or self._lock is not None:
            return
        if reason := self._take(self._inputs.place):
            # Snakemake would wrap an exception of an input function, and show its traceback.
            print(reason, file=sys.stderr, flush=True)
            raise SystemExit(1)

    def _take(self, results: Path) -> str:
        """Take the folder of results for this run; returns why it cannot be taken, with the fix."""
        for path in self._inputs.files_of_the_user():
            if Path(path).stat().st_mtime > time.time():
                return (
                    f"{path} has a time stamp ahead of this machine's clock, so everything made from it would always "
                    f"count as outdated. Fix: correct the clock, or run `touch {path}`"
                )
        with suppress(OSError):
            results.mkdir(parents=True, exist_ok=True)
        if not os.access(results, os.W_OK):
            return (
                f"{results} cannot be written (read-only file system, or no permission). Fix: make it writable, or "
                f"set `results` to another folder and `reuse: {results}`, which takes the finished fits"
            )
        self._lock = lock(results, self._workflow.resource_settings.cores)
        if self._lock is None:
            return f"another run is using {results}. Fix: wait until it has ended, or set `results` to another folder"
        lines = [*mend_time_stamps(results), *remove_damaged_metadata(Path(".snakemake/metadata"))]
        if not self._workflow.touch:
            lines += tidy(results)
        for line in lines:
            print(line, file=sys.stderr, flush=True)
        if self._cache:
            forget_failures(results)
        if self._workflow.local_exec and sys.platform == "linux":
            os.environ["FAIRCLUST_MAIN_PROCESS"] = str(os.getpid())
            if import_server.ADDRESS not in os.environ:
                self._server = import_server.start()
        atexit.register(self._tidy_up)
        return ""

    def _say_work(self) -> None:
        """Say how many cells a run would fit, and about how long that takes. Snakemake's graph may have failed."""
        dag = self._workflow.dag
        if dag is None:
            return
        from fairclust.pipeline.progress import cell_states

        # In a module the rule has a prefix. Other rules may end with these letters, too.
        fits, needed = self._inputs.place / "fits", dag.needrun_jobs(exclude_finished=False)
        jobs = [
            job
            for job in needed
            if job.rule.name.endswith("fit") and Path(job.output[0]).is_relative_to(fits)
        ]
        config = self._inputs.config.model_copy(update={"results": str(self._inputs.place)})
        cells, minutes = 0, 0.0
        for job in jobs:
            forced = forced_since(job.rule.name, str(job.output[0])) > 0
            for block in self._inputs.jobs[f"{job.wildcards.dataset}/{job.wildcards.job}"]:
                states = cell_states(config, block)
                n_cells = sum(forced or state in ("to go", "again") for state, _ in states)
                cells += n_cells
                minutes += estimated_minutes(config, *block.at, n_cells)
        if jobs:
            cores = self._workflow.resource_settings.cores or 1
            print(
                f"{cells} cells to fit in {len(jobs)} jobs: roughly {duration(60 * minutes / cores)} on "
                f"{count(cores, 'core')}, estimated from the numbers of rows in the catalogue.",
                file=sys.stderr,
            )

    def on_success(self) -> None:
        """Say what was done and where the results are."""
        self._tidy_up()
        inputs, results = self._inputs, self._inputs.place
        if not (results / "summary.json").is_file():
            return
        lines = [*describe(results / "summary.json"), *describe_times(results, self._began)]
        lines.append(f"scores:  {results}/scores/scores.csv (and .parquet; costs of the cells in runs.csv)")
        if inputs.table_files():
            lines.append(f"tables:  {results}/tables/ (Markdown, CSV and LaTeX)")
        if n_figures := sum(len(of["figures"]) for of in inputs.shown.values()):
            lines.append(f"figures: {results}/figures/ ({count(n_figures, 'figure')})")
        if inputs.config.report.html:
            lines.append(f"report:  {results}/report/index.html (to share: {results}/report.zip)")
        print("\n".join(lines), flush=True)

    def on_error(self) -> None:
        """Say where the messages of failed jobs are, and how to resume."""
        self._tidy_up()
        print(f"Some jobs failed; their messages are above and in {self._inputs.place}/logs/.")
        print("What is finished is kept. To resume, run the same command again.")

    def _tidy_up(self) -> None:
        import_server.stop(self._server)
        self._server = None
        if self._cache:
            forget_failures(self._inputs.place)


def no_report_yet(arguments: Sequence[str], results: Path) -> str:
    """Why Snakemake cannot make its report, with the fix; empty if it can, or if it is not asked for one."""
    asked = any(word == "--report" or word.startswith("--report=") for word in arguments[1:])
    if not asked or (results / "provenance.json").is_file():
        return ""
    return (
        f"--report packs the results of a finished run, and {results} holds none. Fix: run the same command without "
        "--report first, as in `snakemake --cores 4`, and then with it"
    )


def describe(summary: Path) -> list[str]:
    """Lines for the terminal: counts, then one line per reason for missing cells."""
    found = json.loads(Path(summary).read_text())
    lines = [f"{found['cells']} cells: {in_words(dict(sorted(found['by_status'].items())))}"]
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for item in found["missing"]:
        at = (item["dataset"], item["status"], item["reason"])
        reasons.setdefault(at, []).append(f"{item['method']} ({item['cells']})")
    for (dataset, status, reason), methods in reasons.items():
        lines.append(f"  {status}: {dataset}, {', '.join(methods)}: {brief(reason)}")
        lines += [f"    {line}" for line in reason.splitlines()[1:] if line.startswith("Fix: ")]
    return lines


def job_seconds(results: Path, began: float = 0.0) -> Counter[str]:
    """Wall seconds of the jobs of each rule, from the files that `job` wrote beside their logs since `began`."""
    found, logs = Counter[str](), results / "logs"
    for path in logs.rglob("*.seconds"):
        if path.stat().st_mtime >= began:
            with suppress(ValueError):  # a damaged file
                rule = path.relative_to(logs).with_suffix("").parts[0]
                found.update({rule: float(path.read_text())})
    return found


def describe_times(results: Path, began: float) -> list[str]:
    """What this run, which began at a time in seconds since the epoch, spent on fits, and what the pipeline added."""
    from fairclust.pipeline.scores import read_table

    frame = read_table(results / "scores/runs.parquet")
    fitted = frame[frame.finished >= began]
    fit = float(fitted.wall_seconds.sum())
    jobs = sum(job_seconds(results, began).values())
    added = max(0.0, jobs - fit)
    # Of fits of a few seconds, the share would be thousands of per cent and say nothing.
    share = f" ({added / fit:.0%} of the fitting time)" if added < fit else ""
    return [
        f"{len(fitted)} cells fitted in this run, {len(frame) - len(fitted)} taken as they were",
        f"fitting {fit:.1f} s; starting, compiling, reading, scoring and drawing {added:.1f} s{share}; "
        f"from start to end {time.time() - began:.1f} s",
    ]


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
        why = "some fit jobs have failed. Fix: run the same command again, which keeps finished fits"
    elif strict and found["missing"]:
        why = "strict: true, and not every cell is ok"
    elif problems:
        raise RuntimeError("\n".join(["some tables or figures could not be made", *problems]))
    else:
        return
    raise RuntimeError("\n".join([why, *describe(summary), *problems]))
