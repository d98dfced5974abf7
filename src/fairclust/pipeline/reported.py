"""The values that a paper reports, and those of its published program: a CSV of each, described in config/README.md."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from fairclust.pipeline.columns import COLUMNS
from fairclust.pipeline.papers import ConfigError, ProgramSpec

KEY = ("table", "dataset", "n_clusters", "method", "lam", "metric")
"""The columns that together name one reported value."""

NO_VALUES = pd.DataFrame(columns=[*KEY, "value", "decimals"])
"""The reported values of a paper that has no file of them."""

OF_DATA = {"n_nodes": "n_rows", "n_groups": "n_groups"}
"""Properties of a data set that a paper reports, and the column of the scores with the same property."""

_METRICS = [*COLUMNS, *OF_DATA]
_UNKNOWN_METRIC = f"an unknown metric (known: {', '.join(_METRICS)})"

_TYPES = {
    **dict.fromkeys(("table", "dataset"), "string"),
    **dict.fromkeys(("n_rows", "n_groups", "n_clusters"), "Int64"),
    **{"lam": "float64", "method": "string", "metric": "string"},
    **{"value": "float64", "decimals": "Int64", "note": "string"},
}
_OPTIONAL = ("n_rows", "n_groups", "lam", "decimals", "note")
_PROGRAM_TEXT = ("table", "dataset", "method", "metric", "program", "variant", "setting", "note")
_PROGRAM_NUMBERS = ("n_clusters", "lam", "runs", "mean", "sd", "low", "high", "seconds")


@cache
def load_reported(path: str | Path) -> pd.DataFrame:
    """Read the reported values of one paper, a row for each. Do not change the frame: it is cached.

    Texts are ``string``, counts ``Int64``, ``lam`` and ``value`` ``float64``; what a paper does not print is missing.
    ConfigError, with the lines, if the file breaks the format.
    """
    raw = _read(path, _TYPES, _OPTIONAL)
    raw["decimals"] = [
        given or (str(len(text.partition(".")[2])) if text else "")
        for given, text in zip(raw["decimals"], raw["value"], strict=True)
    ]
    malformed: dict[str, pd.Series] = {}
    frame = pd.DataFrame(index=raw.index)
    for name, type_ in _TYPES.items():
        column = raw[name] if type_ == "string" else _numbers(raw[name], malformed, whole=type_ == "Int64")
        frame[name] = column.astype(type_)
    absent = frame["value"].isna()
    rules = {
        "an empty name": (frame[["table", "dataset", "method", "metric"]] == "").any(axis=1),
        _UNKNOWN_METRIC: ~frame["metric"].isin(_METRICS),
        "an infinite number": np.isinf(frame["value"]) | np.isinf(frame["lam"]),
        "no value and no note": absent & (frame["note"] == ""),
        "a value that was already given": frame.duplicated(list(KEY)),
    }
    _check(path, malformed, rules)
    return frame


def load_programs(path: str | Path, programs: Mapping[str, ProgramSpec]) -> pd.DataFrame:
    """Read the values of published programs, which the paper's file describes; absent numbers are NaN.

    ConfigError, with the lines, if the file breaks the format or names a program that the paper's file does not
    describe.
    """
    raw = _read(path, [*_PROGRAM_TEXT, *_PROGRAM_NUMBERS])
    malformed: dict[str, pd.Series] = {}
    frame = raw.assign(**{name: _numbers(raw[name], malformed) for name in _PROGRAM_NUMBERS})
    rules = {
        "no runs, mean, low or high": frame[["runs", "mean", "low", "high"]].isna().any(axis=1),
        _UNKNOWN_METRIC: ~frame["metric"].isin(_METRICS),
        f"a program that the paper's file does not describe (it has {', '.join(programs) or 'none'})": ~frame[
            "program"
        ].isin(list(programs)),
        "a value that was already given": frame.duplicated([*KEY, "program", "variant"]),
    }
    _check(path, malformed, rules)
    return frame.assign(kind=frame["program"].map({name: spec.kind for name, spec in programs.items()}))


def _read(path: str | Path, known: Collection[str], optional: Collection[str] = ()) -> pd.DataFrame:
    """A CSV as text, with all known columns; those that are optional may be absent."""
    try:
        # A line with too few values has missing ones at its end.
        raw = pd.read_csv(path, dtype=str, keep_default_na=False).fillna("")
    except (OSError, ValueError) as error:  # errors of pandas are ValueErrors
        raise ConfigError(f"{path} cannot be read: {error}") from None
    if missing := [name for name in known if name not in raw and name not in optional]:
        raise ConfigError(f"{path} lacks the columns {missing}; known are {list(known)}")
    if unknown := [name for name in raw if name not in known]:
        raise ConfigError(f"{path} has unknown columns {unknown}; known are {list(known)}")
    return raw.reindex(columns=list(known), fill_value="")


def _numbers(texts: pd.Series, malformed: dict[str, pd.Series], *, whole: bool = False) -> pd.Series:
    """A column of texts as numbers. Empty ones are NaN, and so are others that are no numbers, added to `malformed`."""
    numbers = pd.to_numeric(texts.where(texts != ""), errors="coerce").astype("float64")
    wrong = numbers.isna() & (texts != "")
    if whole:
        wrong |= numbers.notna() & (numbers % 1 != 0)
    what = "whole number" if whole else "number"
    malformed[f"column {texts.name!r} holds something that is no {what},"] = wrong
    return numbers.mask(wrong)


def _check(path: str | Path, malformed: Mapping[str, pd.Series], rules: Mapping[str, pd.Series]) -> None:
    """Raise an error with a line for everything that is wrong. Rules are not checked in lines with malformed cells."""
    odd = pd.concat(malformed, axis=1).any(axis=1)
    broken = {**malformed, **{what: lines & ~odd for what, lines in rules.items()}}
    problems = [
        f"{path}: {what} in line(s) {[int(row) + 2 for row in np.flatnonzero(lines.to_numpy(dtype=bool))]}"
        for what, lines in broken.items()
        if lines.any()
    ]
    if problems:
        raise ConfigError("\n".join(problems))
