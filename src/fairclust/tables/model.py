"""A fitted method with the preparation of its table. `fit --save` writes it, and `predict` uses it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from fairclust import __version__
from fairclust.group_encoding import SensitiveColumn
from fairclust.messages import shortened
from fairclust.outputs import atomic_write
from fairclust.stored import Stored, StoredError
from fairclust.tables.errors import TableError
from fairclust.tables.groups import cross, group_columns, text_or_numbers
from fairclust.tables.preparation import MISSING, as_categories, read_preparation, stored_preparation
from fairclust.tables.reading import read_table


@dataclass
class TableModel:
    """A fitted method, and the preparation that turns raw rows into its input."""

    preparation: Pipeline  # fitted, from `make_preparation`
    estimator: Any  # fitted
    sensitive: list[str]
    missing: str  # as in `make_preparation`
    ids: list[str]  # columns to write beside the labels
    # The sensitive columns of numbers that are cut into ranges; the ranges are the groups.
    ranges: dict[str, SensitiveColumn] = field(default_factory=dict)
    # Whether the method was fitted to each of several sensitive columns. Otherwise the groups are the combinations.
    by_column: bool = False
    # The sensitive columns of numbers whose mean the method bounds; it gets their numbers.
    means: list[str] = field(default_factory=list)
    # The sensitive columns and categories that were text in the fit, and not numbers.
    texts: list[str] = field(default_factory=list)
    version: str = __version__  # of fairclust, which made the model

    @property
    def features(self) -> list[str]:
        """The raw columns that the method clusters by."""
        columns = self.preparation.named_steps["columns"]
        return [name for _, _, names in columns.transformers for name in names]

    @property
    def needed(self) -> list[str]:
        """The columns in which a row needs values to get a label; features are among them only if none are imputed."""
        return [*self.sensitive, *(self.features if self.missing == "drop" else [])]

    def read(self, path: str | Path, **options: Any) -> pd.DataFrame:
        """Read a table as that of the fit was read; for the options, see `read_table`."""
        names = {*self.sensitive, *self.texts}
        return read_table(path, values=names, texts=self.texts, ids=self.ids, **options)

    def usable(self, frame: pd.DataFrame) -> pd.Series:
        """Which rows have a group and, if rows with missing cells are dropped, all features.

        TableError if the table lacks a column.
        """
        self._check_features(frame)
        if self._lacks_groups(frame):
            keep = pd.Series(True, index=frame.index)
        else:
            keep = self._columns(frame).notna().all(axis=1) & frame[self.means].notna().all(axis=1)
        return keep & frame[self.features].notna().all(axis=1) if self.missing == "drop" else keep

    def unseen(self, frame: pd.DataFrame) -> dict[str, list[str]]:
        """For each column of categories, its values that did not occur in the fit, if there are any.

        A row with such a value counts as having none of the known values of the column.
        """
        _, pipeline, names = self.preparation.named_steps["columns"].transformers_[1]
        if not names:
            return {}
        text = as_categories(frame[names])
        known = dict(zip(names, pipeline[-1].categories_, strict=True))
        new = {name: sorted(set(text[name].dropna()) - set(known[name])) for name in names}
        return {name: values for name, values in new.items() if values}

    def groups(self, frame: pd.DataFrame) -> pd.Series:
        """The group of every row."""
        return cross(self._columns(frame))

    def _columns(self, frame: pd.DataFrame) -> pd.DataFrame:
        missing = self.missing == "group"
        return group_columns(frame, self.sensitive, missing_is_group=missing, ranges=self.ranges)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """The cluster of every row. All rows must be `usable`.

        Some methods need no groups. For them the table may lack all sensitive columns. TableError if the table lacks
        a column, or has a group that did not occur in the fit.
        """
        self._check_features(frame)
        X = self.preparation.transform(frame)
        if not self._lacks_groups(frame):
            return self.estimator.predict(X, sensitive_features=self._groups_for_estimator(frame))
        try:
            return self.estimator.predict(X)
        except ValueError:
            raise TableError(
                f"the table has no sensitive column {self.sensitive[0]!r}, and {type(self.estimator).__name__} needs "
                "the groups of new rows. Fix: add the column, or fit by --method kmeans or fmc, which need no groups"
            ) from None

    def _lacks_groups(self, frame: pd.DataFrame) -> bool:
        return not any(name in frame.columns for name in self.sensitive)

    def _check_features(self, frame: pd.DataFrame) -> None:
        absent = [name for name in self.features if name not in frame.columns]
        if absent:
            raise TableError(f"the table has no column {absent[0]!r}, which the model was fitted to")

    def _groups_for_estimator(self, frame: pd.DataFrame) -> Any:
        """The groups in the form that the estimator was fitted to."""
        if not self.by_column:
            return self.groups(frame).to_numpy(dtype=str)
        groups = self._columns(frame)
        return {name: text_or_numbers(groups, frame, name, self.means) for name in groups}

    def save(self, path: str | Path) -> None:
        """Write the model as text, which holds no code; `load_model` reads it."""
        content = {
            "format": _FORMAT,
            "version": self.version,
            "method": type(self.estimator).__name__,
            "missing": self.missing,
            "by_column": self.by_column,
            **{name: getattr(self, name) for name in _LISTS},
            "ranges": [column.stored() for column in self.ranges.values()],
            "preparation": stored_preparation(self.preparation),
            "fitted": self.estimator._stored(),
        }
        with atomic_write(Path(path)) as file:
            file.write(json.dumps(content).encode())


_FORMAT = "fairclust model"
_BEGIN = json.dumps({"format": _FORMAT}).removesuffix("}").encode()
_LISTS = [field.name for field in fields(TableModel) if field.type == "list[str]"]
# The first bytes of a pickle, and of one that joblib has compressed.
_PICKLES = (b"\x80", b"\x78\x5e")


def load_model(path: str | Path, methods: Any) -> TableModel:
    """Read a model that `TableModel.save` has written. No code in the file is run, and everything in it is checked.

    `methods` is the module that has the class of the model. TableError if there is no such file, or it does not hold a
    model of this version.
    """
    if not Path(path).is_file():
        raise TableError(f"there is no file {path}")
    with Path(path).open("rb") as file:
        begin = file.read(len(_BEGIN))
        text = begin + file.read() if begin == _BEGIN else b""
    if begin.startswith(_PICKLES):
        raise TableError(
            f"{path} seems to be a model of fairclust 0.2.0 or older. Those models can run any code, so they are not "
            "read any more. Fix: fit again with --save, or predict by the release that saved the model"
        )
    if not text:
        raise TableError(
            f"{path} is no model that `fairclust fit --save` has written. Fix: name the model first and the table "
            "second, as in `fairclust predict MODEL TABLE`"
        )
    try:
        stored = Stored(json.loads(text))
        version = stored.text("version")
        model = _read(stored, methods) if version == __version__ else None
    except Exception as error:
        # A changed file can raise almost any error, here or in scikit-learn.
        reason = shortened(str(error) or type(error).__name__, 300)
        raise TableError(f"{path} is damaged: {reason}. Fix: fit again with --save") from None
    if model is None:
        raise TableError(
            f"{path} was saved by fairclust {shortened(version)}, this is {__version__}: fit it again, or install "
            "that version"
        )
    return model


def _read(stored: Stored, methods: Any) -> TableModel:
    lists: dict[str, Any] = {name: stored.texts(name) for name in _LISTS}
    missing = stored.text("missing", MISSING)
    if not lists["sensitive"] or not set(lists["means"]) <= set(lists["sensitive"]):
        raise StoredError("sensitive and means do not fit together")
    preparation = read_preparation(stored.part("preparation"), missing)
    estimator = getattr(methods, stored.text("method", methods.__all__))()
    estimator._take_stored(stored.part("fitted"), len(preparation.get_feature_names_out()))
    ranges = [SensitiveColumn.from_stored(part) for part in stored.parts("ranges")]
    return TableModel(
        preparation,
        estimator,
        missing=missing,
        ranges={column.name: column for column in ranges},
        by_column=stored.flag("by_column"),
        **lists,
    )
