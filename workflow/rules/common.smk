import os
import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError

# The package beside these rules, which has the same version, and the user's classes in the working folder. Where there
# is no package beside them, as in a workflow that Snakemake downloads, an installed one is imported.
_rules = Path(workflow.current_basedir.get_path_or_uri(secret_free=True))
sys.path[:0] = [str(_rules.parents[1] / "src"), str(Path.cwd())]

from fairclust.pipeline import run_events
from fairclust.pipeline.config import ConfigError, as_list, load_config, read_yaml
from fairclust.pipeline.results_folder import foreign_folder
from fairclust.pipeline.rule_inputs import RuleInputs, megabytes, share_sources

BEGAN = time.time()
ORIGIN = " with ".join(map(str, workflow.configfiles))
share_sources()
try:
    # Snakemake has read the files already. It uses the last of two equal keys without a message and reads 010 as 8,
    # which this call refuses.
    for file in workflow.configfiles:
        read_yaml(Path(file))
    CONFIG = load_config(
        config,
        user=workflow.config_settings.overwrite_config,
        origin=ORIGIN,
    )
    if workflow.is_main_process and (reason := foreign_folder(Path(CONFIG.results))):
        raise ConfigError(f"{ORIGIN} cannot be used:\n  - {reason}")
    INPUTS = RuleInputs(CONFIG)
except ConfigError as error:
    raise WorkflowError(str(error)) from None
RESULTS = CONFIG.results
# Scripts read the selection from this key.
config["run"] = CONFIG.run.model_dump(mode="json")


wildcard_constraints:
    dataset=r"[\w.-]+",
    method=r"[\w.-]+",
    source=r"[\w.-]+",
    block=r"k\d+(-s\d+)?",
    paper=r"\w+",
    name=r"[\w-]+",


# Snakemake's cache between workflows is used only if it is set up. Otherwise Snakemake would warn at every start.
CACHE = "SNAKEMAKE_OUTPUT_CACHE" in os.environ
EVENTS = run_events.RunEvents(workflow, INPUTS, BEGAN, cache=CACHE)


def scaled(amount, per_input_mb=0):
    """A resource that grows with the size of the inputs and doubles with every attempt."""

    def asked(wildcards, input, attempt):
        return round(amount + per_input_mb * megabytes(input)) * 2 ** (attempt - 1)

    return asked


def of_method(resource, default=None):
    """The resource that the configuration states for the jobs of a method."""

    def asked(wildcards):
        own = getattr(CONFIG.methods[wildcards.method].jobs, resource)
        return default if own is None else own

    return asked


def fit_param(name):
    """One of the parameters of a fit job. They are plain and short."""
    return lambda w: INPUTS.fit_params(w.dataset, w.method, w.block)[name]


def of_cluster(**keys):
    """Resources that the `jobs` of some method asks for, under the given keys. Other methods keep the user's default.

    A rule that names a resource hides the default of the profile and the command line. So a resource that no method
    asks for is left out.
    """
    jobs = {name: method.jobs for name, method in CONFIG.methods.items()}
    defaults = workflow.resource_settings.default_resources or {}

    def asked(resource, key):
        default = (
            str(defaults[resource].raw).strip("'\"") if resource in defaults else None
        )
        return lambda w: getattr(jobs[w.method], key) or default

    return {
        resource: asked(resource, key)
        for resource, key in keys.items()
        if any(getattr(own, key) for own in jobs.values())
    }


onstart:
    EVENTS.on_start()


onsuccess:
    EVENTS.on_success()


onerror:
    EVENTS.on_error()
