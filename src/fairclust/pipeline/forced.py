"""Fits that the user forces by Snakemake's options `--forcerun`, `--force` and `--forceall`.

Only Snakemake's main process knows these options. It passes them on to the processes of its jobs, also on other
machines, in an environment variable. They are no parameter of the rule, because the next run, without the options,
would then fit every cell again.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from fairclust.pipeline.job import Job

_FORCED = "FAIRCLUST_FORCED"


def remember_forced(workflow: Any) -> None:
    """Tell the processes of all jobs what the user forces; Snakemake knows it once it builds the graph of jobs."""
    asked = workflow.dag_settings
    if _FORCED in os.environ or asked is None or not workflow.is_main_process:
        return
    names = set(asked.forcerun) | (set(asked.targets) if asked.forcetargets else set())
    forced = {"since": time.time(), "all": bool(asked.forceall), "names": sorted(map(str, names))}
    os.environ[_FORCED] = json.dumps(forced)


def is_forced(rule: str, output: str | Path) -> bool:
    """Whether the user forces the job of a rule with this output."""
    asked = json.loads(os.environ.get(_FORCED, "{}"))
    names = {os.path.normpath(name) for name in asked.get("names", ())}
    return bool(asked.get("all")) or bool(names & {rule, os.path.normpath(output)})


def forced_since(job: Job) -> float:
    """The time from which on a forced job counts cells as finished; 0 if the job is not forced."""
    if not is_forced(job.rule, job.output[0]):
        return 0.0
    return float(json.loads(os.environ[_FORCED])["since"])
