"""Preparation of a data set: source files or a generator become scaled features, group codes and a card."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.datasets.digest import content_digest
from fairclust.datasets.edges import join_pieces, read_graph
from fairclust.datasets.errors import SourceCorrupt, problem
from fairclust.datasets.generate import Generated, run_generator
from fairclust.datasets.read import read_rows
from fairclust.datasets.scaling import MEANING, minmax, standardize, unit_rows
from fairclust.datasets.spec import DatasetSpec, SourceSpec, source_names, stated_sources
from fairclust.datasets.store import PreparedDataset, data_hash

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
        else:
            made, rows_read, dropped, more, scaled = read_rows(name, spec, files)
            origin |= more
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
