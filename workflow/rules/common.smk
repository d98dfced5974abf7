import os
import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError

# The package of this very checkout, and classes of the user's own beside the Snakefile.
sys.path[:0] = [str(Path(workflow.basedir) / "src"), str(Path.cwd())]

from fairclust.bench.config import ConfigError, load_config
from fairclust.bench.sharing import forget_failures
from fairclust.plan import Plan, megabytes, share_sources

BEGAN = time.time()
share_sources()
try:
    CONFIG = load_config(config, origin=" with ".join(map(str, workflow.configfiles)))
    PLAN = Plan(CONFIG)
except ConfigError as error:
    raise WorkflowError(str(error)) from None
RESULTS = CONFIG.results


wildcard_constraints:
    dataset=r"[\w.-]+",
    method=r"[\w.-]+",
    source=r"[\w.-]+",
    block=r"k\d+(-\d+of\d+)?",


# Snakemake's cache between workflows is asked only where there is one; else it would warn at every start.
CACHE = "SNAKEMAKE_OUTPUT_CACHE" in os.environ
if CACHE and workflow.is_main_process:
    forget_failures(RESULTS)


def scaled(amount, per_input_mb=0):
    """More of a resource with the size of the inputs, and twice as much at every attempt."""

    def asked(wildcards, input, attempt):
        return round(amount + per_input_mb * megabytes(input)) * 2 ** (attempt - 1)

    return asked


onsuccess:
    forget_failures(RESULTS)
    print("\n".join(PLAN.closing_words(BEGAN)))


onerror:
    forget_failures(RESULTS)
    print("Some jobs failed; their messages are above and in", f"{RESULTS}/logs/.")
    print("What is finished is kept: the same command again goes on from here.")
