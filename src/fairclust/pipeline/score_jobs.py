"""Jobs that gather the scores of a run."""

from __future__ import annotations

from pathlib import Path

from fairclust.pipeline.blocks import plan_blocks
from fairclust.pipeline.config import load_config
from fairclust.pipeline.progress import lost_records
from fairclust.pipeline.rule_inputs import used_settings
from fairclust.pipeline.scores import gather_scores
from fairclust.pipeline.script import Job
from fairclust.pipeline.summary import require_complete, write_summary


def scores(job: Job) -> None:
    """What the rule `scores` does."""
    scores, _, runs, _, summary, origin = map(Path, job.output)
    config = load_config(job.config)
    lost = lost_records(config, job.params["lost"])
    found = gather_scores(list(map(Path, job.input[""])), scores.with_suffix(""), runs.with_suffix(""), lost)
    settings = {**used_settings(config, plan_blocks(config)), "digest": job.params["configuration"]}
    write_summary(found, settings, summary, origin)


def check_strict(job: Job) -> None:
    """What the rule `check_strict` does."""
    require_complete(Path(job.input[""][0]))
