"""`fairclust merge`: several result folders into one, with tables and report made anew and nothing fitted."""

from __future__ import annotations

import argparse

from fairclust.bench.merge import MergeError, merge_results
from fairclust.bench.summary import describe
from fairclust.cli import CommandError
from fairclust.report.catalogue import TABLES, Names
from fairclust.report.html import write_page
from fairclust.report.tables import make_tables


def run(args: argparse.Namespace) -> list[str]:
    """Merge result folders.

    Parameters
    ----------
    args : Namespace
        folders, out.

    Returns
    -------
    list of str
        Counts, and where the results are.

    Raises
    ------
    CommandError
        The folders cannot be merged.
    """
    try:
        merged = merge_results(args.folders, args.out)
    except MergeError as error:
        raise CommandError(str(error)) from None
    out, names = args.out, Names.of_config(merged.config)
    tables = [name for name in merged.config.get("report", {}).get("tables", []) if name in TABLES]
    make_tables(tables, out / "scores" / "scores.parquet", out / "tables", names)
    write_page(
        out / "scores" / "scores.parquet",
        out / "scores" / "runs.parquet",
        out / "provenance.json",
        (out / "tables").glob("*.*"),
        names,
        out / "report" / "index.html",
        out / "report.zip",
    )
    lines = describe(out / "summary.json")
    if merged.conflicts:
        lines.append(
            f"{merged.conflicts} cells were fitted by several folders with different code or data: "
            "of those that ended well the later one counts"
        )
    return [
        *lines,
        f"scores: {out}/scores/scores.csv",
        *([f"tables: {out}/tables/ ({', '.join(tables)})"] if tables else []),
        f"report: {out}/report/index.html",
        f"figures: snakemake --cores 2 --config results={out} (takes every cell from the store)",
    ]
