"""What happens when Snakemake's main process starts a run, ends it well, or ends it with failed jobs."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError

from fairclust.pipeline import import_server
from fairclust.pipeline.cell_store import KEEP_COPY, files_beside, remove_copies, set_aside
from fairclust.pipeline.results_folder import (
    lock,
    mend_time_stamps,
    remove_damaged_metadata,
    tidy,
)
from fairclust.pipeline.rule_inputs import FINISHING, RuleInputs
from fairclust.pipeline.sharing import forget_failures
from fairclust.pipeline.summary import duration, nothing_fitted

# The rules of the second pass: everything that is made from finished fits.
_REPORT_RULES = (
    *("everything", "all", "tables", "figures", "scores", "table", "claims", "figure", "overview"),
    *("leaderboard", "scoreboard", "page"),
)
# Options of Snakemake that run finished jobs again.
_FORCING = {"-f", "--force", "-F", "--forceall"}
_FORCING_WITH_NAMES = {"-R", "--forcerun"}


class RunEvents:
    """The handlers of one Snakemake process.

    Parameters
    ----------
    workflow : object
        Snakemake's workflow.
    inputs : RuleInputs
    began : float
        When the process began, in seconds since the epoch.
    cache : bool
        Whether Snakemake's cache between workflows is in use.
    """

    def __init__(self, workflow: Any, inputs: RuleInputs, began: float, *, cache: bool) -> None:
        self._workflow = workflow
        self._inputs = inputs
        self._began = began
        self._server: Any = None
        self._cache = cache
        self._lock: Any = None
        if workflow.is_main_process and (reason := no_report_yet(sys.argv, Path(inputs.results))):
            raise WorkflowError(reason)
        if workflow.is_main_process and FINISHING not in os.environ:
            if workflow.output_settings.dryrun:
                # Snakemake calls no handler at the end of a dry run.
                atexit.register(self._say_work)
            else:
                self._take_results()

    def _take_results(self) -> None:
        """Lock the results, and mend time stamps and records at which Snakemake would stop."""
        results = Path(self._inputs.results)
        if results.is_dir() and not os.access(results, os.W_OK):
            # If the run writes anything, it fails later, with a message of Snakemake that says less.
            print(_not_writable(results), file=sys.stderr, flush=True)
        elif results.is_dir():
            self._lock = lock(results)
            if self._lock is not None:
                for line in [
                    *mend_time_stamps(results),
                    *remove_damaged_metadata(Path(".snakemake/metadata")),
                ]:
                    print(line, file=sys.stderr, flush=True)
                if self._cache:
                    forget_failures(results)

    def on_start(self) -> None:
        """Copy damaged outputs, set the old outputs of fit jobs aside, and start the import server.

        Raises
        ------
        WorkflowError
            The results cannot be written, or another run is using them.
        """
        results = Path(self._inputs.results)
        main_process = self._workflow.is_main_process and FINISHING not in os.environ
        if main_process and results.is_dir() and not os.access(results, os.W_OK):
            raise WorkflowError(_not_writable(results))
        for path in self._inputs.files_of_the_user() if main_process else ():
            if Path(path).stat().st_mtime > time.time():
                raise WorkflowError(
                    f"{path} has a time stamp ahead of this machine's clock, so everything made from it would always "
                    f"count as outdated. Fix: correct the clock, or run `touch {path}`"
                )
        if main_process and self._lock is None:
            results.mkdir(parents=True, exist_ok=True)
            self._lock = lock(results)
            if self._lock is None:
                raise WorkflowError(
                    f"another run is using {results}. Fix: wait until it has ended, or set `results` to another folder"
                )
        if main_process and not self._workflow.touch:
            for line in tidy(results):
                print(line, file=sys.stderr, flush=True)
        os.environ["FAIRCLUST_RETRIES"] = str(self._workflow.execution_settings.retries or 0)
        if not self._workflow.touch and FINISHING not in os.environ:
            set_outputs_aside(self._workflow.dag, self._is_incomplete)
        local = getattr(self._workflow, "local_exec", False)
        if not local:
            os.environ[KEEP_COPY] = "1"
        if local:
            # To limit the rate of submission, Snakemake looks at every waiting job once a second for each job that it
            # has started. One machine needs no limit, and with 600 jobs this took a quarter of a core.
            self._workflow.scheduler.job_rate_limiter = None
        if local and self._workflow.is_main_process and sys.platform == "linux":
            os.environ["FAIRCLUST_MAIN_PROCESS"] = str(os.getpid())
            if import_server.ADDRESS not in os.environ:
                self._server = import_server.start()

    def _is_incomplete(self, job: Any) -> bool:
        return bool(self._workflow.async_run(self._workflow.persistence.incomplete(job)))

    def _say_work(self) -> None:
        """Say how many cells a run would fit, and about how long that takes. Snakemake's graph may have failed."""
        dag = self._workflow.dag
        if dag is None:
            return
        jobs = [job for job in dag.needrun_jobs(exclude_finished=False) if job.rule.name == "fit"]
        cells, minutes = 0, 0.0
        for job in jobs:
            forced = _is_forced(dag, job, self._is_incomplete)
            found = self._inputs.work(
                job.wildcards.dataset, job.wildcards.method, job.wildcards.block, forced
            )
            cells, minutes = cells + found[0], minutes + found[1]
        if jobs:
            cores = self._workflow.resource_settings.cores or 1
            time_left = f"{duration(60 * minutes / cores)} on {cores} core{'s' * (cores > 1)}"
            print(
                f"{cells} cells to fit in {len(jobs)} jobs: roughly {time_left}, estimated from the numbers of rows in "
                "the catalogue.",
                file=sys.stderr,
            )

    def on_success(self) -> None:
        """Say what was done and where the results are. It is an error if every cell of this run was skipped."""
        self._tidy_up()
        if FINISHING not in os.environ:
            print("\n".join(self._inputs.closing_words(self._began)), flush=True)
            if nothing_fitted(Path(self._inputs.results) / "summary.json", self._began):
                raise WorkflowError(
                    "Every cell was skipped, so the results are empty. The reasons are above."
                )

    def on_error(self) -> None:
        """Make tables and page without the failed jobs, and say what is missing."""
        self._tidy_up()
        if FINISHING in os.environ:
            return
        inputs, scheduler = self._inputs, self._workflow.scheduler
        lost = [job for job in self._workflow.dag.needrun_jobs() if job.rule.name == "fit"]
        stopped = scheduler._user_kill or scheduler.running or list(scheduler.open_jobs)
        if not stopped:
            if lost and not inputs.config.strict:
                print(f"{len(lost)} fit jobs have failed. Making tables and page without them.", flush=True)
                command = finishing_command(sys.argv, inputs.config.run.papers)
                subprocess.run(command, env={**os.environ, FINISHING: "1"}, check=False)
                print("\n".join(inputs.closing_words(self._began)))
            for job in lost:
                print(f"failed: {job.output[0]} (its log: {job.log[0]})")
            print("Some jobs failed; their messages are above and in", f"{inputs.results}/logs/.")
        print("What is finished is kept. To resume, run the same command again.")

    def _tidy_up(self) -> None:
        import_server.stop(self._server)
        self._server = None
        remove_copies(Path(self._inputs.results))
        if self._cache:
            forget_failures(self._inputs.results)


def no_report_yet(arguments: Sequence[str], results: Path) -> str:
    """Why Snakemake cannot make its report, with the fix; empty if it can, or if the command asks for no report.

    Parameters
    ----------
    arguments : sequence of str
        The command line of the run, program first.
    results : Path
        The folder of results.

    Returns
    -------
    str
    """
    asked = any(word == "--report" or word.startswith("--report=") for word in arguments[1:])
    if not asked or (results / "provenance.json").is_file():
        return ""
    return (
        f"--report packs the results of a finished run, and {results} holds none. Fix: run the same command without "
        "--report first, as in `snakemake --cores 4`, and then with it"
    )


def _not_writable(results: Path) -> str:
    return (
        f"{results} cannot be written (read-only file system, or no permission). Fix: make it writable, or set "
        f"`results` to another folder and `reuse: {results}`, which takes the finished fits"
    )


def set_outputs_aside(dag: Any, is_incomplete: Callable[[Any], bool]) -> None:
    """Rename the old outputs of fit jobs that are about to run. The jobs take finished cells from the renamed files.

    Otherwise Snakemake would restore an old output when its job fails, and later take it to be up to date. If the user
    forces a job to run (`-f`, `-R fit`, `--forceall`), its old files are removed, so that it fits every cell again.

    Parameters
    ----------
    dag : object
        Snakemake's graph of jobs.
    is_incomplete : callable
        Whether a run was killed after a job had written its output and before Snakemake recorded that. Snakemake
        forces these jobs itself.
    """
    for job in dag.needrun_jobs():
        if job.rule.name != "fit":
            continue
        path = Path(job.output[0])
        by_user = _is_forced(dag, job, is_incomplete)
        if path.is_file():
            set_aside(path, "earlier")
        if by_user:
            for old in files_beside(path):
                old.unlink(missing_ok=True)


def _is_forced(dag: Any, job: Any, is_incomplete: Callable[[Any], bool]) -> bool:
    """Whether the user forces a job to run."""
    return job.rule in dag.forcerules or (dag.reason(job).forced and not is_incomplete(job))


def finishing_command(arguments: Sequence[str], papers: Iterable[str] = ()) -> list[str]:
    """The command of the second pass, which makes what does not need the failed jobs.

    Parameters
    ----------
    arguments : sequence of str
        The command line of the run, program first.
    papers : iterable of str
        Papers of the run, each of which is a target.

    Returns
    -------
    list of str
        Without options that force jobs, and only with the rules that make tables, figures and page.
    """
    kept: list[str] = []
    skipping = False
    for argument in arguments[1:]:
        if argument in _FORCING_WITH_NAMES:
            skipping = True
            continue
        if skipping and not argument.startswith("-"):
            continue
        skipping = False
        if argument not in _FORCING and not argument.startswith("--forcerun="):
            kept.append(argument)
    with contextlib.suppress(ValueError):
        # Snakemake would take the options that are added below for targets.
        kept.remove("--")
    return [sys.executable, "-m", "snakemake", *kept, "--nolock", "--allowed-rules", *_REPORT_RULES, *papers]
