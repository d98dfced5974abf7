import json
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.io import local

# The package beside these rules, which has the same version, and the user's classes in the working folder. Where there
# is no package beside them, as in a workflow that Snakemake downloads, an installed one is imported.
_rules = Path(workflow.current_basedir.get_path_or_uri(secret_free=True))
sys.path[:0] = [str(_rules.parents[1] / "src"), str(Path.cwd())]

import fairclust
from fairclust.pipeline.config import ConfigError, load_config, read_yaml
from fairclust.pipeline.plan import (
    Plan,
    all_plain,
    code_of,
    megabytes,
    plain,
    share_sources,
)

ORIGIN = " with ".join(map(str, workflow.configfiles))
share_sources()
try:
    # Snakemake has read the files already, but it uses the last of two equal keys without a message.
    for file in workflow.configfiles:
        read_yaml(Path(file))
    CONFIG = load_config(
        config,
        user=workflow.config_settings.overwrite_config,
        origin=ORIGIN,
    )
    PLAN = Plan(CONFIG)
    if workflow.is_main_process:
        PLAN.check()
    if workflow.is_main_process and CONFIG.run.papers:
        from fairclust.report.paper_checks import paper_problems

        if problems := paper_problems(CONFIG):
            raise ConfigError(
                "\n".join(
                    [f"{ORIGIN} cannot be used:", *(f"  - {line}" for line in problems)]
                )
            )
except ConfigError as error:
    raise WorkflowError(str(error)) from None
RESULTS = CONFIG.results
# Scripts read these keys. On the command line they may have been texts.
config["same_digits"] = CONFIG.same_digits
config["mirror"] = CONFIG.mirror


wildcard_constraints:
    dataset=r"[\w.-]+",
    method=r"[\w.-]+",
    source=r"[\w.-]+",
    paper=r"\w+",
    table=r"(?!claims\.)[\w-]+",
    # A figure of fronts is named after its data set.
    figure=r"[\w.-]+",


# Snakemake's cache between workflows is used only if it is set up. Otherwise Snakemake would warn at every start.
CACHE = "SNAKEMAKE_OUTPUT_CACHE" in os.environ


def ask(answer):
    """An input function or parameter with the wildcards as arguments, whose ConfigError Snakemake shows as a message."""

    def asked(wildcards):
        try:
            return answer(*wildcards)
        except ConfigError as error:
            raise WorkflowError(str(error)) from None

    return asked


def of_fit(answer):
    """As `ask`, for the fit job of the wildcards."""
    return ask(lambda dataset, method: answer(PLAN.fit(dataset, method)))


# The folder of sources, which a workflow that has this one as a module may put below a prefix.
RAW = workflow.modifier.modify_path(f"{RESULTS}/data/raw")


def mirrors_of(wildcards):
    """The mirrors with which a source was obtained, else those of this run: others are no reason to fetch it again."""
    try:
        record = json.loads(Path(RAW, wildcards.source, "source.json").read_text())
        return record["mirrors"] if record["status"] == "ok" else CONFIG.mirror
    except (OSError, ValueError, KeyError):
        return CONFIG.mirror


def scaled(amount, per_input_mb=0):
    """A resource that grows with the size of the inputs and doubles with every attempt."""
    return lambda wildcards, input, attempt: round(
        amount + per_input_mb * megabytes(input)
    ) * 2 ** (attempt - 1)


# Fit jobs in a submission of `profiles/slurm`, besides the first.
OTHERS_IN_GROUP = 7


def scaled_fit(amount, per_input_mb=0):
    """As `scaled`, for an amount that depends on the fit job, and up to the last of `jobs.attempts`."""
    return lambda wildcards, input, attempt: scaled(
        of_fit(amount)(wildcards), per_input_mb
    )(wildcards, input, min(attempt, CONFIG.jobs.attempts))


# For its limit of 100 jobs a second, Snakemake 9.27 starts a timer at every job that ends, and each timer starts the
# next one, so that after 500 jobs it plans 500 times a second. Without this limit it plans when a job ends. A limit
# that the user states is kept.
onstart:
    limiter = workflow.scheduler.job_rate_limiter
    if limiter and (limiter.max_jobs, limiter.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None
