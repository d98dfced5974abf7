"""Preparation of a data set: source files or a generator become scaled features, group codes and a card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.datasets.digest import content_digest
from fairclust.datasets.edges import join_pieces, read_graph
from fairclust.datasets.errors import SourceCorrupt, problem
from fairclust.datasets.generate import Generated, run_generator
from fairclust.datasets.groups import code_groups, read_numbers
from fairclust.datasets.raw import groups_of_file, is_raw, read_raw
from fairclust.datasets.scaling import MEANING, minmax, standardize, unit_rows
from fairclust.datasets.spec import DatasetSpec, SensitiveSpec, SourceSpec, source_names, stated_sources
from fairclust.datasets.store import PreparedDataset, data_hash
from fairclust.datasets.table import Factor, Table, TableFile
from fairclust.group_encoding import BETWEEN, cross_codes, value_text

LARGEST = 1e140
# Beside a value this many times larger, another one counts as zero, because a double has 15 decimal digits.
HIDING = 1e15


def prepare_dataset(
    name: str,
    spec: DatasetSpec,
    paths: Mapping[str, str | Path],
    sources: Mapping[str, SourceSpec] | None = None,
) -> PreparedDataset:
    """Read or generate a data set, code its groups, scale its features.

    Parameters
    ----------
    name : str
        Name of the data set.
    spec : DatasetSpec
        Its specification.
    paths : mapping of source name to path
        The files, as :func:`fairclust.datasets.fetch_source` returns them. A source that is specified inside the data
        set has a name made from that of the data set, see :func:`fairclust.datasets.source_names`.
    sources : mapping of source name to SourceSpec, optional
        The sources that `spec` names, as :meth:`Catalogue.sources_of` returns them. They give the
        card its licences and URLs, and their hashes are checked.

    Returns
    -------
    PreparedDataset
        ``X`` float64 (N, d) C-contiguous, ``groups`` int32 (N,), names and card; a graph has d = 0 and ``W``.

    Raises
    ------
    DatasetError
        A column is missing, a feature is not a number, a group is unknown or empty, the file of the groups has another
        length, fewer than two rows are left, the number of rows differs from `rows`, or a graph is in pieces.
    SourceCorrupt
        A file does not have the hash that its source states.
    """
    scaled = False
    if spec.generator is not None:
        made = run_generator(name, spec.generator, spec.params)
        rows_read = len(made.X)
        dropped: list[dict[str, object]] = []
        origin: dict[str, Any] = {"generator": spec.generator, "params": dict(spec.params)}
    else:
        files, origin = _files(name, spec, paths, sources or {})
        if spec.edges:
            made, rows_read, dropped = read_graph(name, spec, files)
        elif is_raw(spec):
            found, more, scaled = read_raw(name, spec, files)
            made, rows_read, dropped = _made_of(found), found["rows_read"], found["dropped"]
            origin |= more
        else:
            made, rows_read, dropped, ordered = _read(name, spec, files)
            origin |= {"ordered": ordered} if ordered else {}
    if made.W is not None:
        made, left_out, origin["graph"] = join_pieces(name, made, spec.components)
        dropped = [*dropped, *left_out]
    rows, width = made.X.shape
    if rows < 2 or (width < 1 and made.W is None):
        raise problem(
            "too little data",
            dataset=name,
            expected="at least 2 rows and 1 feature",
            found=f"{rows} of {rows_read} rows, {width} features",
            fix="check 'drop_rows' and 'features'",
        )
    if spec.rows not in (None, rows):
        raise problem(
            "another number of rows than the configuration states",
            dataset=name,
            expected=f"{spec.rows:,} rows",
            found=f"{rows:,} of {rows_read:,} rows that were read",
            fix="check 'drop_rows', 'header' and the file, or correct 'rows'",
        )
    sizes = np.bincount(made.groups, minlength=len(made.group_names))
    _check_sizes(name, made, sizes)
    if scaled:
        scaling: list[dict[str, Any]] = [{"step": step, "meaning": MEANING[step]} for step in spec.scale]
    else:
        scaling = _scale(name, made, spec.scale) if made.W is None else []
    card = {
        "status": "ok",
        "name": name,
        "title": spec.title,
        "shown": spec.shown,
        "rows": rows,
        "columns": list(made.feature_names),
        **_categories_card(made),
        "groups": [
            {"name": group, "size": int(size), "share": float(size) / rows}
            for group, size in zip(made.group_names, sizes, strict=True)
        ],
        **(
            {"sensitive": {name: list(values) for name, (_, values) in made.columns.items()}}
            if made.columns
            else {}
        ),
        **({"numbers": list(made.numbers)} if made.numbers else {}),
        "n_clusters": spec.n_clusters,
        "rows_read": rows_read,
        "dropped": dropped,
        "scaling": scaling,
        **origin,
        "data_hash": data_hash(*made[:6], tuple(made.columns), made.numbers),
    }
    columns = {name: codes for name, (codes, _) in made.columns.items()}
    return PreparedDataset(*made[:4], card, *made[4:6], columns, made.numbers)


def _files(
    name: str, spec: DatasetSpec, paths: Mapping[str, str | Path], sources: Mapping[str, SourceSpec]
) -> tuple[list[Path], dict[str, Any]]:
    """Return the files in the order of `source_names`, and their description for the card."""
    files, cards = [], []
    for source, stated in zip(source_names(name, spec), stated_sources(spec), strict=True):
        if source not in paths:
            raise problem(
                f"no path is given for its source '{source}'", dataset=name, found=sorted(paths) or "none"
            )
        path = Path(paths[source])
        if not path.is_file():
            raise problem("no such file", dataset=name, file=path, fix=f"fetch the source '{source}'")
        files.append(path)
        source_spec = stated if isinstance(stated, SourceSpec) else sources.get(source)
        cards.append(_source_card(source, source_spec, path))
    return files, {"sources": cards}


def _source_card(source: str, spec: SourceSpec | None, path: Path) -> dict[str, Any]:
    found = content_digest(path)
    card: dict[str, Any] = {"name": source, "sha256": found}
    if spec is None:
        return {**card, "check": "not verified"}
    expected = spec.content_sha256
    if expected not in (None, found):
        raise SourceCorrupt(
            f"source '{source}': sha256 of '{path.name}' is {found}, expected {expected}. "
            "Fix: fetch the source again"
        )
    return {
        **card,
        "check": "not verified" if expected is None else "verified",
        "file": spec.file or spec.path,
        "member": spec.member,
        "urls": list(spec.urls),
        "homepage": spec.homepage,
        "licence": spec.licence or "not stated",
        "note": spec.note,
    }


def _read(
    name: str, spec: DatasetSpec, files: list[Path]
) -> tuple[Generated, int, list[dict[str, object]], dict[str, list[str]]]:
    """Features and groups before scaling, the number of rows in the file, what was dropped, ordered categories."""
    sensitive, *more = spec.sensitive_columns
    table = TableFile(files[0], spec.reader, name)
    inside = table.position(sensitive.column) if len(files) == 1 else None
    ordered = [table.position(column) for column in spec.ordered]
    categorical = [table.position(column) for column in spec.categorical]
    truth = [] if spec.truth is None else [table.position(spec.truth)]
    further = [table.position(column.column) for column in more]
    if spec.features == "all":
        others = {inside, *further, *ordered, *categorical, *truth}
        features = [i for i in range(len(table.names)) if i not in others]
    else:
        features = [table.position(column) for column in spec.features]
    listed = [*features, *ordered, *categorical, *truth]
    if {inside, *further} & {*features, *ordered} or len({*listed}) < len(listed):
        raise problem(
            "'features' lists a column twice, or the sensitive column, or the truth",
            dataset=name,
            file=files[0].name,
            found=[table.names[i] for i in listed],
            fix="list each feature once, as numeric or categorical; the groups must not be a feature",
        )
    drops = {table.position(column): listed for column, listed in spec.drop_rows.items()}
    read = table.read(features, inside, drops, [*ordered, *categorical, *truth, *further])
    if read.factor is not None:
        factor, words = read.factor, (table.path.name, table.names[inside or 0])
    else:
        key = [] if sensitive.key is None else _texts(table, table.position(sensitive.key))
        factor, group_name = groups_of_file(name, spec, sensitive, files, table.names, key, len(read.kept))
        words = files[1].name, group_name
    groups, group_names = code_groups(name, sensitive, factor, read.kept, *words)
    columns: dict[str, tuple[np.ndarray, tuple[str, ...]]] = {}
    numbers = {}
    if sensitive.bins is not None:
        numbers[words[1]] = read_numbers(name, factor, read.kept, *words)
    if more:
        read, rest, measured = _split_columns(name, more, read, table, further)
        numbers |= measured
        columns = {words[1]: (groups, group_names), **rest}
        groups, group_names = _combinations(list(columns.values()))
    # From here on, ordered categories are numeric features: X holds their codes.
    levels = read.categories[: len(ordered)]
    values = {table.names[column]: list(found) for column, found in zip(ordered, levels, strict=bool(levels))}
    categories = read.categories[len(ordered) :]
    made = Generated(
        read.X,
        groups,
        read.feature_names,
        group_names,
        categories=categories,
        columns=columns,
        numbers=numbers,
    )
    if truth:
        made = _split_truth(made)
    return made, len(read.kept), read.dropped, values


def _made_of(found: dict[str, Any]) -> Generated:
    """The data of a raw table, with the combinations of several sensitive columns as the groups."""
    columns = found["groups"]
    groups, names = (
        next(iter(columns.values())) if len(columns) == 1 else _combinations(list(columns.values()))
    )
    return Generated(
        found["X"],
        groups,
        found["feature_names"],
        names,
        truth=found.get("truth"),
        columns=columns if len(columns) > 1 else {},
        numbers=found["numbers"],
    )


def _texts(table: TableFile, column: int) -> list[str]:
    factor = table.read([], column).factor or Factor(np.empty(0, np.int32), ())
    return [value_text(factor.values[code]) for code in factor.codes]


def _split_columns(
    name: str, sensitive: list[SensitiveSpec], read: Table, file: TableFile, places: list[int]
) -> tuple[Table, dict[str, tuple[np.ndarray, tuple[str, ...]]], dict[str, np.ndarray]]:
    """Split the last columns, which are sensitive, off a table.

    Returns the rest, codes and names of groups by column, and the numbers of the columns that are cut into ranges.
    """
    n_columns = len(places)
    everyone = np.ones(len(read.X), dtype=bool)
    found, numbers = {}, {}
    for column, place, codes, values in zip(
        sensitive, places, read.X[:, -n_columns:].T, read.categories[-n_columns:], strict=True
    ):
        factor = Factor(codes.astype(np.int32), values)
        words = file.path.name, file.names[place]
        found[file.names[place]] = code_groups(name, column, factor, everyone, *words)
        if column.bins is not None:
            numbers[file.names[place]] = read_numbers(name, factor, everyone, *words)
    rest = replace(
        read,
        X=np.ascontiguousarray(read.X[:, :-n_columns]),
        feature_names=read.feature_names[:-n_columns],
        categories=read.categories[:-n_columns],
    )
    return rest, found, numbers


def _combinations(columns: list[tuple[np.ndarray, tuple[str, ...]]]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes and names of the combinations of values that occur."""
    codes, values = zip(*columns, strict=True)
    groups, cells = cross_codes(codes, [len(names) for names in values])
    named = (BETWEEN.join(names[code] for names, code in zip(values, cell, strict=True)) for cell in cells)
    return groups, tuple(named)


def _split_truth(made: Generated) -> Generated:
    """Make the last column, which holds codes of a category, the true classes."""
    return made._replace(
        X=np.ascontiguousarray(made.X[:, :-1]),
        feature_names=made.feature_names[:-1],
        truth=made.X[:, -1].astype(np.int32),
        categories=made.categories[:-1],
    )


def _check_sizes(name: str, raw: Generated, sizes: np.ndarray) -> None:
    if len(sizes) < 2 or not sizes.all():
        empty = [group for group, size in zip(raw.group_names, sizes, strict=True) if not size]
        raise problem(
            f"group '{empty[0]}' is empty" if empty else "there is only one group",
            dataset=name,
            expected="at least two groups with at least one row each",
            found=", ".join(f"{g}: {s}" for g, s in zip(raw.group_names, sizes.tolist(), strict=True)),
            fix="correct the values in 'sensitive.groups', or check 'drop_rows'",
        )


def _categories_card(raw: Generated) -> dict[str, Any]:
    if not raw.categories:
        return {}
    names = raw.feature_names[-len(raw.categories) :]
    return {"categories": {name: list(values) for name, values in zip(names, raw.categories, strict=True)}}


def _scale(name: str, raw: Generated, steps: tuple[str, ...]) -> list[dict[str, Any]]:
    X = raw.X[:, : raw.X.shape[1] - len(raw.categories)]
    if not X.shape[1]:
        return []
    largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    if largest.max() > LARGEST:
        raise problem(
            "values whose squares overflow",
            dataset=name,
            column=raw.feature_names[int(largest.argmax())],
            expected=f"at most {LARGEST:g}",
            found=f"{largest.max():g}",
            fix="measure the column in a larger unit",
        )
    for i, big in enumerate(largest):
        sizes = np.abs(X[:, i])
        if 2 * np.count_nonzero((sizes > 0) & (sizes * HIDING < big)) > np.count_nonzero(sizes):
            raise problem(
                "a value is so large that most others count as zero beside it",
                dataset=name,
                column=raw.feature_names[i],
                expected="values within 15 orders of magnitude",
                found=f"{X[sizes.argmax(), i]:g}",
                fix="correct the value, or list it under 'drop_rows'",
            )
    cards: list[dict[str, Any]] = []
    for step in steps:
        card: dict[str, Any] = {"step": step, "meaning": MEANING[step]}
        if step == "standardize":
            mean, std, constant = standardize(X)
            card |= {"mean": mean.tolist(), "std": std.tolist()}
            card["constant_columns"] = [raw.feature_names[i] for i in np.flatnonzero(constant)]
        elif step == "minmax":
            low, width = minmax(X)
            card |= {"low": low.tolist(), "width": width.tolist()}
        else:
            card["zero_rows"] = unit_rows(X)
        cards.append(card)
    return cards
