"""`fairclust export`: writes the labels and scores of finished cells as plain files."""

from __future__ import annotations

import argparse
import json
from contextlib import suppress
from typing import Any

import numpy as np

from fairclust.cli import CommandError
from fairclust.messages import nearest
from fairclust.outputs import atomic_write, check_outputs
from fairclust.pipeline.cell_store import cell_path, read_labels, read_output
from fairclust.pipeline.summary import brief

# With this many hexadecimal digits of its key, a cell of a data set, method, K and seed has a name of its own.
_DIGITS = 12


def run(args: argparse.Namespace) -> list[str]:
    """Write `labels.npy` and `score.json` of each chosen cell into a folder of its own.

    Returns a line for each cell, and the place of the data. CommandError if the results have no such cell, or it has
    no labels.
    """
    fits = args.results / "fits"
    if not fits.is_dir():
        raise CommandError(f"--results: {args.results} has no folder 'fits'. Fix: name the results of a run")
    for own in (fits, args.results / "cells"):
        if args.out.resolve().is_relative_to(own.resolve()):
            raise CommandError(f"--out: {args.out} is among the files of cells. Fix: name another folder")
    packs = sorted(fits.glob("*/*.cells"))
    cells = [record for pack in packs for record in read_output(pack)]
    for what, name in (("dataset", args.dataset), ("method", args.method)):
        known = sorted({record[what] for record in cells})
        cells = [record for record in cells if record[what] == name]
        if not cells:
            shown = what.replace("dataset", "data set")
            raise CommandError(f"{fits} has no {shown} {name!r}; {nearest(name, known)}")
    chosen = _chosen(cells, args)
    # All labels are read before a file is written, because a damaged file is found only then.
    labelled = [
        (record, labels)
        for record in chosen
        if record["key"] is not None
        and (labels := read_labels(cell_path(args.results, record["key"]))) is not None
    ]
    found = list({record["key"]: (record, labels) for record, labels in labelled}.values())
    if not found:
        record = chosen[0]
        raise CommandError(
            f"the cell has no labels, because it is {record['status']}: {brief(record['reason'])}"
        )
    folders = [args.out / _folder_name(record) for record, _ in found]
    names = ("labels.npy", "score.json")
    outputs = {f"--out ({folder.name}/{name})": folder / name for folder in folders for name in names}
    check_outputs(
        outputs, [*packs, *(cell_path(args.results, record["key"]) for record, _ in found)], create=True
    )
    lines = []
    for folder, (record, labels) in zip(folders, found, strict=True):
        with atomic_write(folder / names[0]) as file:
            np.save(file, labels)
        with atomic_write(folder / names[1]) as file:
            file.write((json.dumps(record, indent=2) + "\n").encode())
        lines.append(f"{folder}: {_settings(record)}")
    without = len(chosen) - len(labelled)
    lines += [f"{without} cells have no labels and are left out"] if without else []
    return [
        *lines,
        f"row i of labels.npy is row i of X.npy in {args.results / 'data' / 'prepared' / args.dataset}",
    ]


def _chosen(cells: list[dict[str, Any]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """The cells that every option selects; an error lists the values among which an option can choose."""
    wanted = [("--n-clusters", "n_clusters", args.n_clusters), ("--seed", "seed", args.seed)]
    for given in args.set:
        name, sign, text = given.partition("=")
        if not sign:
            raise CommandError(f"--set {given}: expected NAME=VALUE, such as --set lam=100")
        wanted.append(("--set", name, text))
    for option, name, text in wanted:
        if text is None:
            continue
        values = [(cell["params"] if option == "--set" else cell).get(name) for cell in cells]
        left = [cell for cell, value in zip(cells, values, strict=True) if _is(value, str(text))]
        if not left:
            known = ", ".join(dict.fromkeys(f"{name}={value}" for value in values if value is not None))
            known = known or f"the parameters {', '.join(cells[0]['params']) or '(none)'}"
            raise CommandError(f"{option}: no cell that is left has {name}={text}. Fix: choose among {known}")
        cells = left
    return cells


def _is(value: Any, text: str) -> bool:
    """Whether a value is the one that a text on the command line means."""
    with suppress(TypeError, ValueError):
        if not isinstance(value, bool):
            return float(value) == float(text)
    return str(value).casefold() == text.casefold()


def _folder_name(record: dict[str, Any]) -> str:
    return f"{record['dataset']}/{record['method']}/k{record['n_clusters']}-s{record['seed']}-{record['key'][:_DIGITS]}"


def _settings(record: dict[str, Any]) -> str:
    """Setting, cost and balance of a cell in a line."""
    params = [f"{name}={value}" for name, value in record["params"].items()]
    metrics = [
        f"{name} {record['metrics'][name]:g}" for name in ("sse", "balance") if name in record["metrics"]
    ]
    return ", ".join([*params, *metrics])
