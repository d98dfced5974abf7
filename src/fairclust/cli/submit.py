"""`fairclust submit`, `check-submissions` and `board`: submitted labels are scored and compared with a run."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
from pydantic import ValidationError

from fairclust import __version__
from fairclust.cli import CommandError
from fairclust.cli.configuration import load
from fairclust.datasets.errors import DatasetError
from fairclust.datasets.store import PreparedDataset
from fairclust.metrics.table import METRICS
from fairclust.outputs import check_outputs
from fairclust.pipeline.scores import load_scores
from fairclust.pipeline.submissions import (
    COSTS,
    NOTIONS,
    Submission,
    SubmissionError,
    check_metrics,
    encode_labels,
    load_data,
    place_of,
    read_labels,
    read_submission,
    score,
    score_again,
    submission_files,
    write_submission,
)
from fairclust.report.board import (
    FROM_LABELS,
    VERIFIED,
    make_board,
    read_origin,
    submitted_points,
    verified_points,
    write_board,
)
from fairclust.report.names import Names


def run(args: argparse.Namespace) -> list[str]:
    """Check labels, score them and write them as a submission.

    Returns the file, the scores of the labels, and what to do next. CommandError if the labels or the data cannot be
    used, or the submission exists already. Nothing is written then.
    """
    config = load(args.configfile)
    try:
        data = load_data(config, args.dataset, args.mirror)
        n_clusters = config.datasets[args.dataset].n_clusters if args.n_clusters is None else args.n_clusters
        labels = read_labels(args.labels, len(data.groups), n_clusters)
        submission = Submission(
            dataset=args.dataset,
            n_clusters=n_clusters,
            method=args.method,
            setting=args.setting,
            paper=args.paper,
            hardware=args.hardware,
            seconds=args.seconds,
            submitted=datetime.now(UTC).date(),
            version=__version__,
            data_hash=data.card["data_hash"],
            metrics=score(data, labels, n_clusters),
            labels=encode_labels(labels, n_clusters),
        )
        path = place_of(submission, args.folder)
        if path.exists() and not args.replace:
            raise SubmissionError(
                f"{path} exists already. Fix: tell the two apart by --setting, or replace the earlier one by --replace"
            )
        check_outputs({"--folder": path}, [args.labels, *args.configfile], create=True)
        write_submission(submission, path)
    except ValidationError as error:
        lines = [f"--{str(e['loc'][0]).replace('_', '-')}: {e['msg']}" for e in error.errors()]
        raise CommandError("\n".join(lines)) from None
    except (SubmissionError, DatasetError) as error:
        raise CommandError(str(error)) from None
    shown = [METRICS[name] for name in (*COSTS, *NOTIONS.values()) if name in submission.metrics]
    return [
        f"{path}: {len(labels):,} labels, K = {n_clusters}",
        *(f"  {metric.label}: {submission.metrics[metric.name]:,.{metric.decimals}f}" for metric in shown),
        f"Submit this file as a pull request. The board will mark it as '{FROM_LABELS}'.",
    ]


def check(args: argparse.Namespace) -> list[str]:
    """Check every submission: its place, its data, its labels and its metrics.

    CommandError if at least one is wrong; the message has a line with the reason for each.
    """
    config = load(args.configfile)
    paths, problems = submission_files(args.folder), []
    by_dataset: dict[str, list[tuple[Path, Submission]]] = {}
    for path in paths:
        try:
            submission = read_submission(path)
        except SubmissionError as error:
            problems.append(str(error))
        else:
            by_dataset.setdefault(submission.dataset, []).append((path, submission))
    for dataset, found in by_dataset.items():
        try:
            data = load_data(config, dataset, args.mirror)
        except (SubmissionError, DatasetError) as error:
            problems += [f"{path} cannot be checked: {error}" for path, _ in found]
            continue
        for path, submission in found:
            try:
                _check_one(args, path, submission, data)
            except SubmissionError as error:
                problems.append(str(error))
    if problems:
        raise CommandError("\n".join([f"{len(problems)} of {len(paths)} submissions are wrong:", *problems]))
    return [f"{len(paths)} submissions in {args.folder}: the labels of each give the metrics that it states"]


def _check_one(args: argparse.Namespace, path: Path, submission: Submission, data: PreparedDataset) -> None:
    again = score_again(path, submission, args.folder, data)
    try:
        check_metrics(path, submission.metrics, again)
    except SubmissionError:
        if not args.rescore:
            raise
        write_submission(submission.model_copy(update={"metrics": again, "version": __version__}), path)


def board(args: argparse.Namespace) -> list[str]:
    """Write the board of a run and the submissions, and return the numbers of rows, and the files.

    CommandError if the run has no scores, or a submission cannot be read or was scored on other data than the run.
    """
    config = load(args.configfile)
    names = Names(
        datasets={name: spec.title for name, spec in config.datasets.items()},
        methods={name: spec.label or name for name, spec in config.methods.items()},
    )
    file = args.run / "scores" / "scores.parquet"
    if not file.is_file():
        raise CommandError(
            f"--run: there is no {file}. Fix: wait until the run has ended, or name its results folder by --run"
        )
    outputs = {f"--out ({ending})": args.out / f"board.{ending}" for ending in ("csv", "parquet", "md")}
    check_outputs(outputs, [file, *submission_files(args.folder), *args.configfile], create=True)
    try:
        scores = load_scores(file)
        origin = read_origin(args.run, scores)
        found = [read_submission(path) for path in submission_files(args.folder)]
        parts = [verified_points(scores, names), submitted_points(found)]
        made = make_board(pd.concat([part for part in parts if len(part)], ignore_index=True))
    except ValueError as error:
        raise CommandError(str(error)) from None
    paths = write_board(made, names, origin, __version__, args.out)
    return [f"{len(made) - len(found)} rows {VERIFIED}, {len(found)} {FROM_LABELS}:", *map(str, paths)]
