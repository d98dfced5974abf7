"""Jobs that gather the scores of a run."""

from __future__ import annotations

import json
from pathlib import Path

from fairclust.pipeline.blocks import plan_blocks
from fairclust.pipeline.config import load_config
from fairclust.pipeline.rule_inputs import used_settings
from fairclust.pipeline.scores import gather_scores
from fairclust.pipeline.script import Job
from fairclust.pipeline.summary import require_complete, write_summary


def scores(job: Job) -> None:
    """What the rule `scores` does."""
    scores, _, runs, _, summary, origin = map(Path, job.output)
    config = load_config(job.config)
    blocks = plan_blocks(config)
    order = dict.fromkeys(block.at for block in blocks)
    packs = list(map(Path, job.input[""]))
    found = gather_scores(packs, order, scores.with_suffix(""), runs.with_suffix(""))
    settings = {**used_settings(config, blocks), "digest": job.params["configuration"]}
    write_summary(found, settings, summary, origin)


def check(job: Job) -> None:
    """What the rule `check` does: it sets the exit status of the run."""
    problems = [line for path in job.input.get("problems", []) for line in json.loads(Path(path).read_text())]
    require_complete(Path(job.input["summary"][0]), problems, strict=job.params["strict"])
