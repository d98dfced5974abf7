"""The data of a paper's tables, claims and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import ProgramSpec
from fairclust.pipeline.reported import NO_VALUES, load_programs, load_reported
from fairclust.pipeline.scores import load_cells


@dataclass(frozen=True)
class Material:
    """The data from which the tables, claims and figures of a paper are made."""

    # From `pipeline.reported.load_reported`; without rows if the paper has no such file.
    reported: pd.DataFrame
    cells: pd.DataFrame  # from `pipeline.scores.load_cells`, as are the steps
    steps: pd.DataFrame
    names: Names
    # The values of published programs, from `pipeline.reported.load_programs`.
    programs: pd.DataFrame = field(default_factory=pd.DataFrame)
    planes: Mapping[str, Path] = field(default_factory=dict)  # data set to the folder of its unscaled points
    paper: str = ""
    title: str = ""  # the paper's short name


def load_material(paper: str, product: Mapping[str, Any], inputs: Any) -> Material:
    """The data of a product of a paper, from `Plan.product` and the inputs of its rule."""
    cells, steps = load_cells(inputs.fits, product["asked"])
    files = list(inputs.get("reported", []))
    programs = {name: ProgramSpec.model_validate(stated) for name, stated in product["programs"].items()}
    return Material(
        reported=load_reported(files[0]) if files else NO_VALUES,
        cells=cells,
        steps=steps,
        names=Names(**product["names"]),
        programs=load_programs(files[1], programs) if files[1:] else pd.DataFrame(),
        planes={Path(folder).name: Path(folder) for folder in inputs.get("unscaled", [])},
        paper=paper,
        title=product["title"],
    )
