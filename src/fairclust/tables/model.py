"""A fitted method with the preparation of its table. `fit --save` writes it, and `predict` uses it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust import __version__
from fairclust.messages import shortened
from fairclust.outputs import write_text
from fairclust.stored import as_json, from_json
from fairclust.tables.preparation import Preparation
from fairclust.tables.reading import TableError, is_text, more_commas, read_table


@dataclass
class TableModel:
    """A fitted method, and the preparation that turns raw rows into its input.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairclust import KMeans
    >>> from fairclust.tables import TableModel, decide
    >>> people = pd.DataFrame({"sex": list("fmfm"), "age": [20, 22, 50, 48]})
    >>> preparation = decide(people, ["sex"]).preparation
    >>> model = TableModel(preparation, KMeans(2, random_state=0).fit(preparation.transform(people)))
    >>> len(set(model.predict(people)))
    2
    """

    preparation: Preparation
    estimator: Any  # fitted
    # Whether the method was fitted to each of several sensitive columns. Otherwise the groups are the combinations.
    by_column: bool = False

    def read(self, path: str | Path, **options: Any) -> pd.DataFrame:
        """Read a table as that of the fit was read; for the options, see `read_table`.

        Columns that had the decimal point of the fit are read with it again, unless their cells show the other one.
        """
        found = self.preparation
        readings = found.readings | {of.name: of.reading for of in found.columns}
        voters = {name for name, of in readings.items() if of.get("decimal") == found.decimal}
        options |= {"values": {*found.sensitive, *found.features}, "texts": found.texts, "ids": found.ids}
        frame = read_table(path, usual=found.decimal, voters=voters, **options)
        if frame.attrs["decimal"] != found.decimal:
            sign = 1 if found.decimal == "," else -1
            for name in voters.intersection(frame):
                # The preparation reads texts with the decimal point of the fit, so the signs of others are exchanged.
                if is_text(frame[name]) and sign * more_commas(frame[name].dropna().unique()) <= 0:
                    frame[name] = frame[name].str.translate(str.maketrans(".,", ",."))
        return frame

    def reasons(self, frame: pd.DataFrame) -> pd.Series:
        """Why a row gets no label, see `Preparation.reasons`. TableError if the table lacks a column."""
        absent = [name for name in self.preparation.features if name not in frame.columns]
        if absent:
            raise TableError(f"the table has no column {absent[0]!r}, which the model was fitted to")
        return self.preparation.reasons(frame, self._groups(frame))

    def predict(self, frame: pd.DataFrame, keep: Any = slice(None)) -> np.ndarray:
        """The cluster of every row, or of those to `keep`, none of which may have a reason to be left out.

        Some methods need no groups. For them the table may lack all sensitive columns. TableError if the table lacks
        a column, or has a group that did not occur in the fit.
        """
        try:
            X = self.preparation.transform(frame[keep])
        except TableError:
            # Too many cells of these rows are no numbers, but their share of all rows can be small.
            X = self.preparation.transform(frame)[keep]
        frame = frame[keep]
        groups = self._groups(frame)
        if groups is not None:
            found = self.preparation.for_method(frame, groups, by_column=self.by_column)
            return self.estimator.predict(X, sensitive_features=found)
        try:
            return self.estimator.predict(X)
        except ValueError:
            raise TableError(
                f"the table has no sensitive column {self.preparation.sensitive[0]!r}, and "
                f"{type(self.estimator).__name__} needs the groups of new rows. Fix: add the column, or fit by "
                "--method kmeans or fmc, which need no groups"
            ) from None

    def _groups(self, frame: pd.DataFrame) -> pd.DataFrame | None:
        there = any(name in frame.columns for name in self.preparation.sensitive)
        return self.preparation.groups(frame) if there else None

    def save(self, path: str | Path) -> None:
        """Write the model as text, which holds no code; `load_model` reads it."""
        method = type(self.estimator).__name__
        content = as_json([self.preparation, self.by_column, self.estimator._saved()])
        stated = {"format": "fairclust model", "version": __version__, "method": method}
        stated["sha256"] = _digest(method, content)
        write_text(Path(path), f"{json.dumps(stated)}\n{content}")


def _digest(method: str, content: str) -> str:
    return hashlib.sha256(f"{method}\n{content}".encode()).hexdigest()


def load_model(path: str | Path, methods: Any) -> TableModel:
    """Read a model that `TableModel.save` has written. No code in the file is run.

    `methods` is the module that has the class of the model. TableError if there is no such file, or it does not hold a
    model of this version, or is damaged.
    """
    if not Path(path).is_file():
        raise TableError(f"there is no file {path}")
    try:
        head, _, content = Path(path).read_text(encoding="utf-8").partition("\n")
        stated = json.loads(head)
        if stated["version"] != __version__:
            raise TableError(f"fairclust {stated['version']} has written it, and this is {__version__}")
        if stated["method"] not in methods.__all__ or stated["sha256"] != _digest(stated["method"], content):
            raise TableError("its content is not that of its digest, so it is damaged")
        # This also imports the classes of what the method has learned.
        estimator = getattr(methods, stated["method"])()
        preparation, by_column, fitted = from_json(content)
        for name, value in fitted.items():
            setattr(estimator, name, value)
        return TableModel(preparation, estimator, by_column)
    except Exception as error:
        # A foreign or damaged file can raise almost any error.
        reason = shortened(str(error) or type(error).__name__, 300)
        raise TableError(
            f"{path} is no model that `fairclust fit --save` of this version has written: {reason}. Fix: fit again "
            "with --save, and name the model first and the table second, as in `fairclust predict MODEL TABLE`"
        ) from None
