"""Preparation of a data set: source files or a generator become scaled features, group codes and a card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.datasets.edges import largest_piece, read_graph
from fairclust.datasets.errors import DatasetError
from fairclust.datasets.generate import run_generator
from fairclust.datasets.read import read_rows
from fairclust.datasets.spec import DatasetSpec, ScaleStep, SourceSpec
from fairclust.datasets.store import PreparedDataset
from fairclust.messages import UserError, count
from fairclust.outputs import content_digest

# What messages about tables say of the options of the command, and of the keys of a data set.
_KEYS = {
    "the right --delimiter?": "the right 'sep' in 'reader'?",
    "try --encoding ": "set 'encoding' in 'reader' to ",
    "--decimal states it": "'decimal' in 'reader' states it",
}
LARGEST = 1e140
# Beside a value this many times larger, another one counts as zero, because a double has 15 decimal digits.
HIDING = 1e15
# Features are scaled in place and in blocks of so many rows, so that a large matrix is not copied.
BLOCK_ROWS = 1 << 16


def prepare_dataset(
    name: str, spec: DatasetSpec, paths: Mapping[str, str | Path], sources: Mapping[str, SourceSpec]
) -> PreparedDataset:
    """Read or generate a data set, code its groups, scale its features; a DatasetError says why that is impossible.

    `sources` are those of `Catalogue.sources_of`, and `paths` has the files of those that are fetched.
    """
    try:
        return _prepare(name, spec, paths, sources)
    except (DatasetError, UserError) as error:
        message = str(error)
        for option, key in _KEYS.items():
            message = message.replace(option, key)
        raise DatasetError(f"data set '{name}': {message}") from error


def _prepare(
    name: str, spec: DatasetSpec, paths: Mapping[str, str | Path], sources: Mapping[str, SourceSpec]
) -> PreparedDataset:
    origin: dict[str, Any] = {}
    if spec.generator is not None:
        made = run_generator(spec.generator, spec.params)
    else:
        files, origin["sources"] = _files(paths, sources)
        made = (read_graph if spec.edges else read_rows)(spec, files)
    if made.W is not None:
        made = largest_piece(made)
    (rows, width), rows_read = made.X.shape, made.card["rows_read"]
    if rows < 2 or (width < 1 and made.W is None):
        raise DatasetError(
            f"too little data; expected at least 2 rows and 1 feature; found {rows:,} of "
            f"{count(rows_read, 'row')}, {count(width, 'feature')}. Fix: check 'drop_rows' and 'features'"
        )
    if spec.rows not in (None, rows):
        raise DatasetError(
            f"another number of rows than the configuration states; expected {count(spec.rows, 'row')}; found {rows:,} "
            f"of {count(rows_read, 'row')} that were read. Fix: check 'drop_rows', 'header' and the file, or correct "
            "'rows'"
        )
    sizes = np.bincount(made.groups, minlength=len(made.group_names))
    if len(sizes) < 2 or not sizes.all():
        counted = dict(zip(made.group_names, sizes.tolist(), strict=True))
        empty = next((f"group '{group}' is empty" for group, size in counted.items() if not size), "")
        raise DatasetError(
            f"{empty or 'there is only one group'}; expected at least two groups with at least one row each; found "
            f"{', '.join(f'{group}: {size}' for group, size in counted.items())}. Fix: correct the values in "
            "'sensitive.groups', or check 'drop_rows'"
        )
    scaling = _scale(made, spec.scale)
    card = {
        "status": "ok",
        "name": name,
        "title": spec.title,
        "shown": spec.shown,
        "rows": rows,
        "columns": list(made.feature_names),
        "groups": [
            {"name": group, "size": int(size), "share": float(size) / rows}
            for group, size in zip(made.group_names, sizes, strict=True)
        ],
        "n_clusters": spec.n_clusters,
        **made.card,
        "scaling": scaling,
        **origin,
    }
    data = replace(made, card=card)
    card["data_hash"] = data.content_hash()
    return data


def _files(
    paths: Mapping[str, str | Path], sources: Mapping[str, SourceSpec]
) -> tuple[list[Path], list[dict[str, Any]]]:
    """The files of the table and of the groups, and their description for the card."""
    files: list[Path] = []
    cards: list[dict[str, Any]] = []
    for name, source in sources.items():
        path, fix = Path(source.path or paths[name]), f"fetch the source '{name}' again"
        if source.path is not None:
            fix = "check its 'path', which is relative to the working folder, and its 'sha256'"
        if not path.is_file():
            raise DatasetError(f"source '{name}', file '{path}': no such file. Fix: {fix}")
        files.append(path)
        found, expected = content_digest(path), source.content_sha256
        if expected not in (None, found):
            raise DatasetError(
                f"source '{name}': sha256 of '{path.name}' is {found}, expected {expected}. Fix: {fix}"
            )
        check = "not verified" if expected is None else "verified"
        card: dict[str, Any] = {"name": name, "sha256": found, "check": check}
        card |= {"file": source.file or source.path, "member": source.member, "urls": list(source.urls)}
        card |= {"homepage": source.homepage, "licence": source.licence or "not stated", "note": source.note}
        cards.append(card)
    return files, cards


def _scale(raw: PreparedDataset, steps: tuple[ScaleStep, ...]) -> list[str]:
    """Scale the features in place, without the codes of categories. Returns the steps, none if only these are there."""
    X = raw.X[:, : raw.X.shape[1] - len(raw.card.get("categories", ()))]
    if not X.shape[1]:
        return []
    largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    if largest.max() > LARGEST:
        raise DatasetError(
            f"column '{raw.feature_names[int(largest.argmax())]}': values whose squares overflow; expected at most "
            f"{LARGEST:g}; found {largest.max():g}. Fix: measure the column in a larger unit"
        )
    for i, big in enumerate(largest):
        sizes = np.abs(X[:, i])
        if 2 * np.count_nonzero((sizes > 0) & (sizes * HIDING < big)) > np.count_nonzero(sizes):
            raise DatasetError(
                f"column '{raw.feature_names[i]}': a value is so large that most others count as zero beside it; "
                f"expected values within 15 orders of magnitude; found {X[sizes.argmax(), i]:g}. Fix: correct the "
                "value, or list it under 'drop_rows'"
            )
    scalers = {"standardize": standardize, "minmax": minmax, "l2": unit_rows}
    for step in steps:
        scalers[step](X)
    return [*steps]


def _blocks(X: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(X), BLOCK_ROWS):
        yield X[start : start + BLOCK_ROWS]


def standardize(X: np.ndarray) -> None:
    """Centre the columns in place and divide them by their population standard deviations; constant ones become 0.

    Plain sums along the rows, block after block, give the same bits on every machine, unlike einsum and BLAS.
    """
    # By comparing values, because rounding would give constant columns tiny deviations.
    constant = X.min(axis=0) == X.max(axis=0)
    mean = sum(block.sum(axis=0) for block in _blocks(X)) / len(X)
    mean[constant] = X[0, constant]
    for block in _blocks(X):
        block -= mean
    std = np.sqrt(sum(np.square(block).sum(axis=0) for block in _blocks(X)) / len(X))
    # A spread so small that its square underflows counts as zero.
    divisor = np.where(constant | (std == 0.0), 1.0, std)
    for block in _blocks(X):
        block /= divisor


def minmax(X: np.ndarray) -> None:
    """Scale each column in place to reach from 0 to 1 (0 if constant)."""
    low = X.min(axis=0)
    width = X.max(axis=0) - low
    for block in _blocks(X):
        block -= low
        block /= np.where(width > 0, width, 1.0)


def unit_rows(X: np.ndarray) -> None:
    """Divide each row by its Euclidean norm, in place; rows of zeros stay as they are."""
    for block in _blocks(X):
        norm = np.sqrt(np.square(block).sum(axis=1, keepdims=True))
        norm[norm == 0.0] = 1.0
        block /= norm
