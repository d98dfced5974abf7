"""What the user forces by Snakemake's options reaches the processes of the jobs."""

import os
import time
from types import SimpleNamespace

import pytest

from fairclust.pipeline.job import forced_since, remember_forced


def remember(monkeypatch, *, main=True, **asked):
    monkeypatch.setattr(os, "environ", {})
    plain = {"forcerun": frozenset(), "forceall": False, "forcetargets": False, "targets": frozenset()}
    workflow = SimpleNamespace(dag_settings=SimpleNamespace(**plain | asked), is_main_process=main)
    remember_forced(workflow)


FILE = "results/fits/adult/kmeans-k10.cells"


@pytest.mark.parametrize(
    "asked, rule, is_forced",
    [
        ({}, "fit", False),
        ({"forcerun": {"fit"}}, "fit", True),
        ({"forcerun": {"fc_fit"}}, "fc_fit", True),
        ({"forcerun": {"fit"}}, "fc_fit", False),
        ({"forcerun": {"table", f"./{FILE}"}}, "fit", True),
        ({"forcerun": {"results/fits/adult/kmeans-k5.cells"}}, "fit", False),
        ({"forceall": True}, "fit", True),
        ({"forcetargets": True, "targets": {FILE}}, "fit", True),
        ({"forcetargets": False, "targets": {FILE}}, "fit", False),
        ({"forcetargets": True, "targets": {"all"}}, "fit", False),
    ],
)
def test_which_jobs_are_forced(monkeypatch, asked, rule, is_forced):
    before = time.time()
    remember(monkeypatch, **asked)
    assert (before <= forced_since(rule, FILE) <= time.time()) if is_forced else forced_since(rule, FILE) == 0
    # Another process with this environment, which knows nothing of the options, says the same.
    found = forced_since(rule, FILE)
    remember_forced(SimpleNamespace(dag_settings=SimpleNamespace(), is_main_process=False))
    assert forced_since(rule, FILE) == found


def test_only_the_main_process_knows(monkeypatch):
    remember(monkeypatch, main=False, forceall=True)
    assert forced_since("fit", FILE) == 0
    remember_forced(SimpleNamespace(dag_settings=None, is_main_process=True))
    assert forced_since("fit", FILE) == 0
