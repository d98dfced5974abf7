"""`fairclust status`: what a run would find in its data, how far it is, why it fits cells, and which it has no use for.

It reads tables, but does not run generators or classes that the configuration names.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter, defaultdict
from pathlib import Path

import pandas as pd

from fairclust.cli import CommandError
from fairclust.datasets.errors import DatasetError
from fairclust.datasets.prepare import prepare_dataset
from fairclust.messages import count, duration
from fairclust.pipeline.blocks import count_cells
from fairclust.pipeline.config import ConfigError, user_config
from fairclust.pipeline.progress import cell_states, earlier_records, keyed_cells, why_fitted
from fairclust.pipeline.results_folder import cores_of_run, digest_file, foreign_folder
from fairclust.pipeline.rule_inputs import RuleInputs
from fairclust.pipeline.scores import read_table
from fairclust.report.paper_checks import paper_problems


def run(args: argparse.Namespace) -> list[str]:
    """Describe the user's tables that are not prepared yet, and count the cells of a run and the unused ones.

    There is a line for each data set and method that is not finished, and one for all; with `--explain` also one for
    each reason. With `--prune`, remove the unused cells instead. A CommandError has all problems of the configuration.
    """
    inputs = RuleInputs(user_config(args.configfile))
    described = [] if args.prune else _checked(inputs)
    lines, unused = _unused(inputs, prune=args.prune)
    megabytes = f"{sum(path.stat().st_size for path in unused) / 2**20:.1f} MB"
    if args.prune:
        for path in unused:
            path.unlink()
        for folder in {path.parent for path in unused}:
            if not any(folder.iterdir()):
                folder.rmdir()
        return [*lines, f"{megabytes} removed"]
    told = [*lines, f"{megabytes} would be removed by --prune"] if unused else []
    cores = args.cores or cores_of_run(Path(inputs.results)) or os.cpu_count() or 1
    why: list[str] = []
    if args.explain:
        earlier, found = defaultdict(list), Counter[tuple[str, str, str]]()
        for record in earlier_records(Path(inputs.results)):
            earlier[record["dataset"], record["method"]].append(record)
        for block in inputs.blocks:
            for reason, number in why_fitted(inputs.config, block, earlier[block.at[:2]]).items():
                found[*block.at[:2], reason] += number
        why = [f"{dataset}, {method}, {n} to fit: {reason}" for (dataset, method, reason), n in found.items()]
    return [*described, *_progress(inputs, cores), *why, *told]


def _checked(inputs: RuleInputs) -> list[str]:
    """A description of each table of the user that is not prepared yet; CommandError with all problems."""
    config = inputs.config
    problems = paper_problems(config)
    if reason := foreign_folder(Path(config.results)):
        problems.append(reason)
    try:
        inputs.check_classes()
    except ConfigError as error:
        problems.append(str(error))
    lines, of_dataset = [], defaultdict(list)
    for block in inputs.blocks:
        of_dataset[block.dataset].append(block)
    for name, own in of_dataset.items():
        sources = config.sources_of(name)
        is_read = sources and all(source.reads_in_place for source in sources.values())
        if not is_read or Path(config.results, "data/prepared", name).exists():
            continue
        n_cells = sum(map(count_cells, own))
        paths = {of: Path(str(source.path)) for of, source in sources.items()}
        try:
            card = prepare_dataset(name, config.datasets[name], paths, sources).card
        except DatasetError as error:
            problems.append(f"{error} (all {n_cells:,} cells of {name!r} would be skipped)")
        else:
            columns, groups, most = card["columns"], card["groups"], max(block.n_clusters for block in own)
            shown = ", ".join(columns[:20]) + (" ..." if len(columns) > 20 else "")
            lines += [
                f"{name}: {n_cells:,} cells",
                f"  {card['rows']:,} of {card['rows_read']:,} rows, {len(columns)} features: {shown}",
                *(f"  {note}" for note in card.get("notes", ())),
                "  groups: " + ", ".join(f"{group['name']} ({group['size']:,})" for group in groups[:20]),
                *(
                    f"  the group {group['name']} has fewer rows than there are clusters, {most}"
                    for group in groups
                    if group["size"] < most
                ),
            ]
    if problems:
        raise CommandError(
            "\n".join([f"{count(len(problems), 'problem')}:", *(f"  - {p}" for p in problems)])
        )
    return lines


def _progress(inputs: RuleInputs, cores: int) -> list[str]:
    """A line for each data set and method that is not finished, one for all cells, and the time left."""
    states = [
        (*block.at[:2], *state) for block in inputs.blocks for state in cell_states(inputs.config, block)
    ]
    cells = pd.DataFrame(states, columns=["dataset", "method", "state", "seconds"]).astype({"seconds": float})
    lines = [
        f"{dataset}, {method}: {_counted(own.state)}"
        for (dataset, method), own in cells.groupby(["dataset", "method"], sort=False)
        if own.state.isin(["to go", "again", "failed"]).any()
    ]
    lines.append(f"all: {_counted(cells.state)}")
    to_go = cells.state.isin(["to go", "again"])
    if to_go.any():
        # A fit takes as long as the others of its data set and method, else of its method, else as all others.
        of_pair = cells.groupby(["dataset", "method"]).seconds.transform("mean")
        of_method = cells.groupby("method").seconds.transform("mean")
        expected = of_pair.fillna(of_method).fillna(cells.seconds.mean())
        known = "unknown, because no fit has ended yet"
        if cells.seconds.notna().any():
            known = f"about {duration(expected[to_go].sum() / cores)}"
        lines.append(f"time left on {count(cores, 'core')}: {known}")
    return lines


def _counted(states: pd.Series) -> str:
    number = Counter(states)
    text = f"{number['done']:,} of {len(states):,} cells done"
    to_go = number["to go"] + number["again"]
    for n, word in ((number["failed"], "failed"), (number["skipped"], "skipped"), (to_go, "to go")):
        text += f", {n:,} {word}" if n else ""
    return text + (f" ({number['again']:,} of them failed before)" if number["again"] else "")


def _unused(inputs: RuleInputs, *, prune: bool) -> tuple[list[str], list[Path]]:
    """The cells that the configuration does not ask for, and the outputs of jobs that it does not have, in words."""
    results = Path(inputs.results)
    jobs = set(map(Path, inputs.packs()))
    old = [path for path in sorted(results.glob("fits/*/*.cells")) if path not in jobs]
    lines = [f"{path}: belongs to no job of the configuration" for path in old]
    keys = {key for block in inputs.blocks for key, _ in keyed_cells(inputs.config, block)}
    scores = results / "scores" / "scores.parquet"
    scored = read_table(scores).key.dropna() if prune and scores.is_file() else None
    if scored is not None and not (keys.issuperset(scored) and all(job.is_file() for job in jobs)):
        raise CommandError(
            f"the scores in {results} are those of another configuration or of earlier code. Fix: run the "
            "configuration, which takes the finished fits, and then prune"
        )
    extra = [path for path in sorted(results.glob("cells/*/*.cell")) if path.stem not in keys]
    lines += [f"{results / 'cells'}: {len(extra)} cells that are not asked for"] if extra else []
    # `verify` would miss the output of a job whose digests are still there.
    logs = (results / "logs/fit" / path.relative_to(results / "fits") for path in old)
    digests = [digest for log in logs if (digest := digest_file(log)).is_file()]
    return lines, [*old, *digests, *extra]
