import os
import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.io import local

# The package beside these rules, which has the same version, and the user's classes in the working folder. Where there
# is no package beside them, as in a workflow that Snakemake downloads, an installed one is imported.
_rules = Path(workflow.current_basedir.get_path_or_uri(secret_free=True))
sys.path[:0] = [str(_rules.parents[1] / "src"), str(Path.cwd())]

from fairclust.pipeline.config import ConfigError, load_config, read_yaml
from fairclust.pipeline.results_folder import foreign_folder
from fairclust.pipeline.rule_inputs import RuleInputs, megabytes, share_sources
from fairclust.pipeline.run_events import RunEvents, no_report_yet

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
    # A module with a prefix has its results in a folder of this name.
    PLACE = Path(
        workflow.modifier.path_modifier.replace_prefix(f"{CONFIG.results}/.complete")
    ).parent
    if workflow.is_main_process and (reason := foreign_folder(PLACE)):
        raise ConfigError(f"{ORIGIN} cannot be used:\n  - {reason}")
    if workflow.is_main_process and (reason := no_report_yet(sys.argv, PLACE)):
        raise WorkflowError(reason)
    INPUTS = RuleInputs(CONFIG, PLACE)
    if workflow.is_main_process:
        INPUTS.check_classes()
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
# Scripts get the configuration with the catalogues in it, so that they need not read the files again.
config.update(CONFIG.model_dump(by_alias=True, exclude_unset=True))


wildcard_constraints:
    dataset=r"[\w.-]+",
    method=r"[\w.-]+",
    source=r"[\w.-]+",
    job=r"[\w.-]+",
    paper=r"\w+",
    name=r"[\w-]+",


# Snakemake's cache between workflows is used only if it is set up. Otherwise Snakemake would warn at every start.
CACHE = "SNAKEMAKE_OUTPUT_CACHE" in os.environ
EVENTS = RunEvents(workflow, INPUTS, BEGAN, cache=CACHE)


def scaled(amount, per_input_mb=0):
    """A resource that grows with the size of the inputs and doubles with every attempt."""

    def asked(wildcards, input, attempt):
        return round(amount + per_input_mb * megabytes(input)) * 2 ** (attempt - 1)

    return asked


def of_method(resource, default=None):
    """The resource that the configuration states for the methods of a fit job."""

    def asked(wildcards):
        own = getattr(INPUTS.resources_of(wildcards.dataset, wildcards.job), resource)
        return default if own is None else own

    return asked


# Snakemake calls these functions when it builds the graph of jobs, before it looks at their files. It then knows whether
# it will run jobs, and which of them the user forces. Unlike `onstart`, they are called in a module, too. Every job has
# such a function, or an input from a job that has one.
def once_begun(answer):
    """An input function or a parameter that begins the run before it answers."""

    def asked(wildcards):
        EVENTS.begin()
        return answer(wildcards)

    return asked


def of_paper(method, paper):
    """Inputs or a parameter of the rule of a paper, which are computed only if its job is asked for."""
    return once_begun(lambda wildcards: method(paper))


def of_cluster(**keys):
    """Resources that the `jobs` of some method asks for, under the given keys. Other methods keep the user's default.

    A rule that names a resource hides the default of the profile and the command line. So a resource that no method
    asks for is left out.
    """
    jobs = [method.jobs for method in CONFIG.methods.values()]
    defaults = workflow.resource_settings.default_resources or {}

    def asked(resource, key):
        default = (
            str(defaults[resource].raw).strip("'\"") if resource in defaults else None
        )
        return lambda w: getattr(INPUTS.resources_of(w.dataset, w.job), key) or default

    return {
        resource: asked(resource, key)
        for resource, key in keys.items()
        if any(getattr(own, key) for own in jobs)
    }


onsuccess:
    EVENTS.on_success()


onerror:
    EVENTS.on_error()
