"""Groups: the values of one or several sensitive columns, in one spelling, as codes.

A group is a combination of values, one from each column, that occurs in the rows. Bounds are on the values of a column,
while the solvers see only the groups. All data go through `encode_groups` and `cross_codes`: arrays and data frames of
`fit`, sensitive features of metrics, columns of tables and data sets, and chunks of files.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairclust.messages import UserError, count, shortened, warn
from fairclust.stored import storable

# Stands between the values of several columns in the name of a combination.
BETWEEN = " & "
# A column with more different numbers than this is a measurement, unless the numbers are codes (see `is_measured`).
_MANY_VALUES = 20
# A column whose mean is bounded is rounded to at most this many different numbers.
_MEASURED_VALUES = 128


class Values(NamedTuple):
    """A column: its different values, and the position of every row's value among them; -1 if the cell is missing."""

    entries: np.ndarray
    names: np.ndarray

    def at(self, rows: Any) -> np.ndarray:
        """The values of some rows."""
        return self.names[self.entries[rows]]


def label(name: str = "") -> str:
    """How messages call a sensitive column, which has no name if there is only one."""
    return f"sensitive_features[{name!r}]" if name else "sensitive_features"


def one_spelling(text: str) -> str:
    """A text as a value: in the composed form of Unicode (NFC), without blanks and byte order marks around it.

    ValueError if it has a NUL character, where other programs, and NumPy at the end of a text, would cut it off.
    """
    if "\0" in text:
        raise ValueError(f"a NUL character in {shortened(ascii(text))}")
    return unicodedata.normalize("NFC", text.strip().strip("\ufeff").strip())


def describe_merged(spellings: Iterable[Any], values: Iterable[Any]) -> list[str]:
    """A sentence on the values that are written in several ways, if there are any."""
    ways: dict[Any, list[Any]] = {}
    for spelling, value in zip(spellings, values, strict=True):
        ways.setdefault(value, []).append(spelling)
    merged = [written for written in ways.values() if len(written) > 1]
    if not merged:
        return []
    first = shortened(" and ".join(shortened(ascii(spelling)) for spelling in merged[0]), 300)
    more = f"; in all, {len(merged):,} values are written in several ways" if len(merged) > 1 else ""
    return [f"{first} are one value{more}"]


def value_text(value: object) -> str:
    """A value as the name of a group or category. Whole numbers have no fraction, which a missing cell would add."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def natural(value: str) -> tuple[bool, float, str]:
    """Key that sorts numbers by size, before other text."""
    try:
        return (False, float(value), value)
    except ValueError:
        return (True, 0.0, value)


def check_same_order(X: Any, paired: Any, name: str = "sensitive_features", of: str = "X") -> None:
    """Refuse pandas objects with the same index in different orders, because rows are paired by position.

    `paired`, the argument `name`, has what belongs to the rows of `X`, the argument `of`. Both may be mappings.
    """
    columns = (given.values() if isinstance(given, Mapping) else [given] for given in (X, paired))
    indexes: Any = ([getattr(column, "index", None) for column in given] for given in columns)
    for index, other in product(*indexes):
        if not (hasattr(index, "equals") and hasattr(other, "equals")) or index.equals(other):
            continue
        if len(index) == len(other) and index.is_unique and other.is_unique and other.isin(index).all():
            row = int(np.argmax(index != other))
            raise ValueError(
                f"{of} and {name} have one index in different orders: row {row} is {index.tolist()[row]!r} in {of}, "
                f"and {other.tolist()[row]!r} in {name}. Pass {name}.loc[{of}.index], or arrays if the rows belong "
                "together as they stand"
            )


def split_columns(sensitive_features: Any) -> dict[str, Any]:
    """Split sensitive features (array, data frame or mapping; None gives no columns) into columns, by name.

    Columns of a matrix are named by their positions, "0", "1" and so on. A single column without a name gets the empty
    name. ValueError for an array of other than one or two dimensions, one without columns, or two columns of one name.
    """
    if sensitive_features is None:
        return {}
    if isinstance(sensitive_features, str):
        given = shortened(repr(sensitive_features))
        raise ValueError(
            f"sensitive_features is {given}: pass the groups of the rows, such as df[{given}], not a name"
        )
    is_mapping = isinstance(sensitive_features, Mapping)
    if is_mapping or hasattr(sensitive_features, "columns"):
        if hasattr(sensitive_features, "to_pandas"):  # tables of polars and pyarrow
            sensitive_features = sensitive_features.to_pandas()
        names = list(sensitive_features if is_mapping else sensitive_features.columns)
        split = {
            str(name): sensitive_features[name] if is_mapping else sensitive_features.iloc[:, i]
            for i, name in enumerate(names)
        }
        if len(split) < len(names):
            shown = shortened(", ".join(map(repr, names)), 300)
            raise ValueError(
                f"sensitive_features has two columns of one name among {shown}: rename one of them"
            )
        for first, other in combinations(split if is_mapping else [], 2):
            check_same_order(split[first], split[other], label(other), label(first))
        return split
    values = sensitive_features if hasattr(sensitive_features, "ndim") else as_array(sensitive_features)
    if values.ndim == 1:
        name = getattr(sensitive_features, "name", None)
        return {"" if name is None else str(name): sensitive_features}
    if values.ndim != 2 or not values.shape[1]:
        raise ValueError(f"sensitive_features must be one or several columns, found shape {values.shape}")
    # Columns of nested lists get types of their own again.
    columns = list(values.T.tolist() if isinstance(sensitive_features, list | tuple) else values.T)
    return {"": columns[0]} if len(columns) == 1 else {str(i): column for i, column in enumerate(columns)}


def as_array(cells: Any) -> np.ndarray:
    """Cells as an array that still tells which of them are missing: without masks, and lists as objects.

    NumPy would turn the NaN in a list of strings into the string 'nan'.
    """
    if np.ma.isMaskedArray(cells):
        values = np.ma.getdata(cells)
        if np.ma.is_masked(cells):
            values = values.astype(object)
            values[np.ma.getmaskarray(cells)] = None
        return values
    try:
        return np.array(cells, dtype=object) if isinstance(cells, list | tuple) else np.asarray(cells)
    except ValueError:
        raise ValueError(
            "sensitive_features must be one column, found rows of several lengths: pass one value for each row"
        ) from None


def encode_groups(
    sensitive_features: Any, n_samples: int | None = None, *, known: np.ndarray | None = None, name: str = ""
) -> tuple[np.ndarray, np.ndarray]:
    """Group codes, int32, from one sensitive column, and the names of the groups: sorted distinct values, or `known`.

    ValueError, which calls the column by `name`, if it is missing, has another length or several columns, or holds a
    missing value, a text with a NUL character, values of two types with one string, or a value not in `known`. Texts
    that differ only in spelling (`one_spelling`) are one group, with a warning.
    """
    what = label(name)
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features is missing: pass the group of every row by keyword, as in "
            "fit(X, sensitive_features=data['sex']). Searches and pipelines of scikit-learn pass it on only after "
            "sklearn.set_config(enable_metadata_routing=True)"
        )
    values = factored(sensitive_features, what)
    n_rows = len(values.entries)
    if n_samples is not None and n_rows != n_samples:
        raise ValueError(f"{what} has {count(n_rows, 'row')}, X has {n_samples}: pass the group of every row")
    missing = values.entries < 0
    if missing.any():
        raise ValueError(
            f"{what} has {count(int(missing.sum()), 'missing value')} (first in row "
            f"{int(missing.argmax())}): drop those rows or give them a group of their own"
        )
    if known is None:
        return _sorted_values(values, what)
    kinds = {values.names.dtype.kind, known.dtype.kind}
    listed = shortened(", ".join(map(repr, known.tolist())), 300)
    if "U" in kinds and len(kinds) > 1:
        new, seen = ("numbers", "strings") if known.dtype.kind == "U" else ("strings", "numbers")
        raise ValueError(
            f"{what} has {new}, such as {shortened(repr(values.at(slice(1)).tolist()[0]))}, and the groups of "
            f"fit are {seen}: {listed}; convert them to the type that they had in fit"
        )
    codes = positions(values, known)
    if (codes < 0).any():
        strange = np.unique(values.at(codes < 0))[:5].tolist()
        raise ValueError(
            f"{what} has groups not seen in fit: {', '.join(shortened(repr(value)) for value in strange)}; known: "
            f"{listed}. Leave out their rows, or fit on data that have these groups"
        )
    return codes, known


def factored(sensitive_features: Any, what: str = "sensitive_features") -> Values:
    """The different values of one column, as numbers or texts, and where they stand."""
    if isinstance(sensitive_features, Values):
        return sensitive_features
    columns = split_columns(sensitive_features)
    if len(columns) != 1:
        raise ValueError(
            f"{what} must be one column, found {len(columns)}; join several columns into one first, for instance "
            "data['sex'] + '-' + data['race']"
        )
    values = as_array(*columns.values())
    if values.dtype == np.uint8:
        # Codes already, and a billion rows may have them.
        return Values(values, np.arange(256, dtype=np.uint8))
    try:
        entries, names = pd.factorize(values)
    except TypeError as error:
        raise ValueError(f"{what} must be one column ({error}): pass one value for each row") from None
    if values.dtype.kind == "M":
        days, seconds = names.astype("datetime64[D]"), names.astype("datetime64[s]")
        precise = np.where(names == seconds, seconds.astype(str), names.astype(str))
        names = np.where(names == days, days.astype(str), precise)
    return Values(entries, _of_one_type(names, what) if names.dtype == object else names)


def _of_one_type(cells: np.ndarray, what: str) -> np.ndarray:
    """Different objects as numbers if all are numbers, else as strings; two types with one string are an error."""
    if all(isinstance(value, (bool, np.bool_, Integral, Real)) for value in cells):
        return np.array(cells.tolist() or [0])[: len(cells)]
    types: dict[str, type] = {}
    for value in cells:
        text = str(value)
        if types.setdefault(text, type(value)) is not type(value):
            raise ValueError(
                f"{what} has {shortened(repr(text))} as {types[text].__name__} and as "
                f"{type(value).__name__}: give all values one type, for instance by .astype(str)"
            )
    return cells.astype(str)


def _sorted_values(values: Values, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Codes, int32, of the different values, sorted and each in one spelling, and these values."""
    names, places = np.unique(values.names, return_inverse=True)
    codes = places[values.entries]
    counts = np.bincount(codes, minlength=len(names))
    used = counts > 0
    names, codes = names[used], (np.cumsum(used) - 1)[codes]
    if names.dtype.kind == "U":
        try:
            joined = [one_spelling(text) for text in names.tolist()]
        except ValueError as error:
            raise ValueError(f"{what} has {error}: correct it") from None
        if sentences := describe_merged(names.tolist(), joined):
            warn(f"{what}: {'; '.join(sentences)}")
        names, places = np.unique(joined, return_inverse=True)
        codes = places[codes]
    return codes.astype(np.int32), names


def positions(values: Values, known: np.ndarray) -> np.ndarray:
    """Position, int32, of every value in sorted `known`, whose texts have one spelling; -1 for values not in it."""
    names = values.names
    places = np.minimum(np.searchsorted(known, names), len(known) - 1)
    strange = known[places] != names
    if strange.any() and names.dtype.kind == "U":
        spelled = np.array([one_spelling(text) for text in names[strange].tolist()])
        places[strange] = np.minimum(np.searchsorted(known, spelled), len(known) - 1)
        strange[strange] = known[places[strange]] != spelled
    places[strange] = -1
    # The last entry is for missing values, whose entry is -1.
    return np.append(places, -1).astype(np.int32)[values.entries]


def group_codes(sensitive_features: ArrayLike) -> NDArray[np.int64]:
    """Number the groups of the points. If there are several columns, each combination of values is a group.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), data frame, or mapping of columns
        Strings, numbers or categories.

    Returns
    -------
    ndarray of int64, shape (n_samples,)
        Codes 0 .. n_groups - 1 in the order of the sorted values. Every code occurs.

    Raises
    ------
    ValueError
        There are missing values, or texts with a NUL character.

    Warns
    -----
    UserWarning
        Texts that differ only in their spelling are one value, see `one_spelling`.
    """
    columns = split_columns(sensitive_features) or {"": None}
    codes = [encode_groups(cells, name=name)[0] for name, cells in columns.items()]
    lengths = list(map(len, codes))
    if len(set(lengths)) > 1:
        raise ValueError(f"the columns of sensitive_features have {lengths} rows")
    return (codes[0] if len(codes) == 1 else cross_codes(codes)[0]).astype(np.int64)


def cross_codes(codes: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Find the combinations of codes that occur, in lexicographic order: the code of each row, and their cells."""
    groups, cells = np.zeros(len(codes[0]), np.int64), np.empty((1, 0), np.int64)
    for of_rows in codes:
        n = int(of_rows.max(initial=0)) + 1
        # Groups are numbered again after each column, because the product of all numbers of values could overflow.
        both, groups = np.unique(groups * n + of_rows, return_inverse=True)
        cells = np.column_stack([cells[both // n], both % n])
    return groups.astype(np.int32), cells


def combination_names(cells: np.ndarray, values: Iterable[Iterable[Any]], of: str = "") -> list[str]:
    """The names of combinations, given as positions in the values of each column: shape (n_combinations, n_columns).

    UserError, which has `of` behind the word combinations, if two have one name.
    """
    texts = [list(map(str, column)) for column in values]
    names = [
        BETWEEN.join(column[code] for column, code in zip(texts, cell, strict=True))
        for cell in cells.tolist()
    ]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UserError(
            f"two combinations{of} have the name {shortened(repr(twice))}. Fix: rename the values that contain "
            f"{BETWEEN!r}"
        )
    return names


@storable
@dataclass(frozen=True)
class SensitiveColumn:
    """How the cells of a sensitive column are encoded as values."""

    name: str  # Empty if the caller gave no name
    # (n_values,); the different values, the names of ranges, or the numbers of a measured column.
    values: np.ndarray
    # (n_values - 1,); for a column of numbers that is cut into ranges or rounded, the lower end of each range but the
    # first.
    edges: np.ndarray | None = None
    # Whether the mean of the column is bounded. Every cell is then rounded to the nearest of `values`.
    measured: bool = False

    def encode(self, cells: Any, n_samples: int) -> np.ndarray:
        """The value of every cell, as its position in `values`. A missing cell, or another value, is a ValueError."""
        if self.edges is not None:
            numbers = read_numbers(cells, n_samples, self.name)
            return np.searchsorted(self.edges, numbers, side="right").astype(np.int32)
        return encode_groups(cells, n_samples, known=self.values, name=self.name)[0]


def is_measured(values: np.ndarray, n_rows: int | None = None) -> bool:
    """Whether there are more than 20 different numbers and they are not codes.

    Codes are consecutive from 0 or 1 and occur more than twice each on average. If `n_rows` is given, `values` are the
    different numbers that `n_rows` rows hold.
    """
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        return False
    different = np.unique(values)
    coded = (
        different[0] in (0, 1)
        and (np.diff(different) == 1).all()
        and (n_rows or len(values)) > 2 * len(different)
    )
    return len(different) > _MANY_VALUES and not coded


def cut_column(name: str, numbers: np.ndarray, bins: int) -> SensitiveColumn:
    """Cut a column into ranges of about equal numbers of rows. Ranges are fewer if many rows have the same number."""
    if not isinstance(bins, Integral) or bins < 2:
        raise UserError(f"bins must be a whole number of at least 2, found {bins!r}")
    quantiles = np.quantile(numbers, np.arange(1, bins) / bins, method="higher")
    edges = np.unique(quantiles[quantiles > numbers.min()])
    if not len(edges):
        return SensitiveColumn(name, np.array([f"{numbers.min():g}"]), edges)
    ends = [f"{edge:g}" for edge in edges.tolist()]
    if len(set(ends)) < len(ends):
        # Large numbers, such as times in seconds, can be the same in six digits.
        ends = [value_text(edge) for edge in edges.tolist()]
    middle = [f"{low} to below {high}" for low, high in pairwise(ends)]
    return SensitiveColumn(name, np.array([f"below {ends[0]}", *middle, f"{ends[-1]} and above"]), edges)


def measure_column(name: str, numbers: np.ndarray) -> SensitiveColumn:
    """Take all different numbers as values or, if there are more than 128, the means of at most 128 ranges.

    Each range has the same part of the integral of the cube root of the density, which makes the squared rounding
    errors nearly as small as they can be (Panter and Dite 1951). Ranges with equal numbers of rows would be too wide
    in the tails.
    """
    different = np.unique(numbers)
    if len(different) > _MEASURED_VALUES:
        ordered = np.sort(numbers)
        # The density at a number is one over the distance to the next number, up to a factor.
        part = np.cumsum(np.diff(ordered) ** (2 / 3))
        ends = np.searchsorted(part, part[-1] * np.arange(1, _MEASURED_VALUES) / _MEASURED_VALUES)
        codes = np.searchsorted(np.unique(ordered[1 + ends]), numbers, side="right")
        codes = np.unique(codes, return_inverse=True)[1]
        different = np.unique(np.bincount(codes, numbers) / np.bincount(codes))
        # If all numbers of a range are nearer to the means of other ranges, its own mean would be a value without rows.
        different = different[np.unique(np.searchsorted(_middles(different), numbers, side="right"))]
    return SensitiveColumn(name, different, _middles(different), measured=True)


def _middles(values: np.ndarray) -> np.ndarray:
    return (values[1:] + values[:-1]) / 2


def read_numbers(cells: Any, n_samples: int, name: str) -> np.ndarray:
    """A sensitive column as finite numbers; another length, or a missing or infinite number, is a ValueError."""
    values = as_array(cells)
    if values.shape != (n_samples,):
        raise ValueError(f"{label(name)} has the shape {values.shape}, expected ({n_samples},)")
    try:
        values = values.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{label(name)} must hold numbers, because its mean is taken: {error}") from None
    if not np.isfinite(values).all():
        first = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"{label(name)} has a missing or infinite number in row {first}: leave out or fill in such rows"
        )
    return values


@storable
@dataclass(frozen=True)
class Sensitive:
    """The sensitive columns of some rows."""

    columns: tuple[SensitiveColumn, ...]  # Empty if only cluster sizes are bounded
    codes: np.ndarray  # (n_samples,); the group of every row
    # (n_groups, n_columns); the value of every group in each column, as a position in the column's `values`.
    cells: np.ndarray

    @property
    def names(self) -> np.ndarray:
        """Names of the groups: the values of a single column, or else values joined by " & "."""
        if not self.columns:
            return np.array(["all rows"])
        if len(self.columns) == 1:
            return self.columns[0].values
        return np.array(combination_names(self.cells, [column.values for column in self.columns]))

    def members(self, column: int) -> np.ndarray:
        """Which groups have which value of a column, shape (n_values, n_groups), as ones and zeros."""
        values = np.arange(len(self.columns[column].values))
        return (self.cells[:, column] == values[:, None]).astype(float)

    def new_groups(
        self, prices: np.ndarray, by_column: list[np.ndarray], sensitive_features: Any, n_samples: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The group of every new row, as a row of the returned prices, shape (n_new_groups, n_clusters).

        A combination that did not occur has the sum of the prices of its values, `by_column`. If this list is empty, it
        is a ValueError, as is a missing column or a new value.
        """
        columns = self.columns
        if not columns:
            return np.zeros(n_samples, np.int32), prices
        if len(columns) == 1 and columns[0].edges is None:
            return encode_groups(sensitive_features, n_samples, known=columns[0].values)[0], prices
        named = split_columns(sensitive_features)
        if list(named) == [""]:
            # A column without a name is the first one of the fit.
            named = {columns[0].name: named[""]}
        if lacking := [column.name for column in columns if column.name not in named]:
            raise ValueError(
                f"sensitive_features has no column {lacking[0]!r}: pass a table with the columns of the fit"
            )
        codes = [column.encode(named[column.name], n_samples) for column in columns]
        groups, combinations = cross_codes(codes)
        places = {tuple(cell): j for j, cell in enumerate(self.cells.tolist())}
        place = np.array([places.get(tuple(cell), -1) for cell in combinations.tolist()])
        offset = prices[place]
        if (place < 0).any():
            new = combinations[place < 0]
            if not by_column:
                (first,) = combination_names(new[:1], [column.values for column in columns])
                raise ValueError(
                    f"sensitive_features has combinations not seen in fit, such as {first}. Leave out their rows, or "
                    "fit on data that have these combinations"
                )
            offset[place < 0] = sum(prices[codes] for prices, codes in zip(by_column, new.T, strict=True))
        return groups, offset


def read_sensitive(
    sensitive_features: Any, n_samples: int, *, means: Collection[str] | None = None
) -> Sensitive:
    """Read sensitive columns: None, one, several, or a mapping from names.

    `means` names the columns of numbers whose mean is bounded; None if the method bounds no means. Another column of
    many numbers is a ValueError.
    """
    named, measured = split_columns(sensitive_features), set(map(str, means or ()))
    if unknown := measured - set(named):
        raise ValueError(f"mean_tolerance names {sorted(unknown)}, the sensitive columns are {list(named)}")
    columns, codes = [], []
    for name, cells in named.items():
        if name in measured:
            numbers = read_numbers(cells, n_samples, name)
            columns.append(measure_column(name, numbers))
            codes.append(columns[-1].encode(numbers, n_samples))
            continue
        of_rows, names = encode_groups(cells, n_samples, name=name)
        if names.dtype.kind in "iuf" and is_measured(names, n_samples):
            instead = "" if means is None else ", or pass mean_tolerance to bound the mean"
            raise ValueError(
                f"{label(name)} holds {len(names)} different numbers, and each would be a group. Cut it into ranges, "
                f"as pandas.qcut(column, 4) does{instead}. If the numbers are names, convert them to text"
            )
        columns.append(SensitiveColumn(name, names))
        codes.append(of_rows)
    if not columns:
        return Sensitive((), np.zeros(n_samples, np.int32), np.empty((1, 0), np.int64))
    groups, cells = cross_codes(codes)
    return Sensitive(tuple(columns), groups, cells)


def resolve_target(target: Any, names: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Target shares of the groups in the order of `names`, positive and summing to one; None takes the data's own.

    ValueError if there is not one positive share for each group, or the shares do not sum to one.
    """
    if target is None:
        return np.bincount(codes, minlength=len(names)) / len(codes)
    if isinstance(target, Mapping):
        by_name = {one_spelling(str(key)): share for key, share in target.items()}
        if set(by_name) != {str(name) for name in names}:
            raise ValueError(
                f"target names {shortened(str(sorted(map(str, target))), 300)}, the groups are "
                f"{shortened(str([str(n) for n in names]), 300)}: give one share for each group"
            )
        target = [by_name[str(name)] for name in names]
    shares = np.asarray(target, dtype=float)
    if shares.shape != (len(names),):
        raise ValueError(
            f"target has shape {shares.shape}, expected one share for each of {len(names)} groups"
        )
    if not (shares > 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise ValueError(f"target must be positive shares that sum to 1, found {shares.tolist()}")
    return shares / shares.sum()
