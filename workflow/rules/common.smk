import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError

# The package of this very checkout, and classes of the user's own beside the Snakefile.
sys.path[:0] = [str(Path(workflow.basedir) / "src"), str(Path.cwd())]

from fairclust.bench.config import ConfigError, load_config
from fairclust.plan import Plan, share_sources

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


def scaled(amount):
    """More of a resource at every attempt."""
    return lambda wildcards, attempt: amount * 2 ** (attempt - 1)


onsuccess:
    print("\n".join(PLAN.closing_words(BEGAN)))


onerror:
    print("Some jobs failed; their messages are above and in", f"{RESULTS}/logs/.")
    print("What is finished is kept: the same command again goes on from here.")
