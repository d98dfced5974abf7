import os
import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError

# The package of this very checkout, and classes of the user's own beside the Snakefile.
sys.path[:0] = [str(Path(workflow.basedir) / "src"), str(Path.cwd())]

from fairclust.pipeline import run_events
from fairclust.pipeline.config import ConfigError, load_config
from fairclust.pipeline.rule_inputs import (
    RuleInputs,
    megabytes,
    reuse_folders,
    share_sources,
)

BEGAN = time.time()
share_sources()
try:
    CONFIG = load_config(
        config,
        user=workflow.config_settings.overwrite_config,
        origin=" with ".join(map(str, workflow.configfiles)),
    )
    INPUTS = RuleInputs(CONFIG)
except ConfigError as error:
    raise WorkflowError(str(error)) from None
RESULTS = CONFIG.results
# Scripts read the selection from here.
config["run"] = CONFIG.run.model_dump(mode="json")


wildcard_constraints:
    dataset=r"[\w.-]+",
    method=r"[\w.-]+",
    source=r"[\w.-]+",
    block=r"k\d+(-s\d+)?",
    paper=r"\w+",
    name=r"[\w-]+",


# Snakemake's cache between workflows is asked only where there is one; else it would warn at every start.
CACHE = "SNAKEMAKE_OUTPUT_CACHE" in os.environ
EVENTS = run_events.RunEvents(workflow, INPUTS, BEGAN, cache=CACHE)


def scaled(amount, per_input_mb=0):
    """More of a resource with the size of the inputs, and twice as much at every attempt."""

    def asked(wildcards, input, attempt):
        return round(amount + per_input_mb * megabytes(input)) * 2 ** (attempt - 1)

    return asked


def of_method(resource, default=None):
    """What the configuration asks for the jobs of a method."""

    def asked(wildcards):
        own = getattr(CONFIG.methods[wildcards.method].jobs, resource)
        return default if own is None else own

    return asked


onstart:
    EVENTS.on_start()


onsuccess:
    EVENTS.on_success()


onerror:
    EVENTS.on_error()
