"""Publish a finished run: its tables, figures, scores and page to docs/results, and its numbers to README and pages.

    python tools/publish.py --wall-seconds 2555 --readme README.md --page-of config/field.yaml

Run this in the folder of the run. The folder that is written is a Workflow Run RO-Crate, see `crate.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure
from PIL import Image

from crate import CRATE, WORKFLOW, run_crate
from fairclust.looks import COLOURS, MARKS
from fairclust.messages import UserError, counted, in_words
from fairclust.outputs import atomic_write, check_outputs, replace_folder, write_text
from fairclust.pipeline.config import user_config
from fairclust.pipeline.names import Names
from fairclust.pipeline.plan import Plan
from fairclust.pipeline.scores import read_arrow, write_arrow
from fairclust.pipeline.summary import describe
from fairclust.report import agreement
from fairclust.report.claims import load_claims
from fairclust.report.page_tables import picture_size
from fairclust.report.render import Table
from fairclust.report.selection import first_line, shareable
from fairclust.report.tables import load_evidence, row_verdicts, summary
from fairclust.report.verdicts import CAUSES, DIFFERS

# What a page shows of a run stands between two marks.
_MARKS = re.compile(r"(?<=<!-- results: begin -->\n).*?(?=<!-- results: end -->)", re.DOTALL)
# With more bytes than this, a note says that the results are too large for a repository.
_MOST_BYTES = 8_000_000
# With fewer colours, marks have other colours than stated, and faint ones become white.
_COLOURS = 256
_WIDEST = 1410
# Fronts that pages of the documentation show.
_FRONTS = ("adult", "bank_3")
# Columns of the scores of another run that `fairclust score` does not read.
_UNREAD = (
    *("key", "estimator", "fingerprint", "warnings", "random_state", "average_balance", "delta_mean", "awd"),
    *("delta", "share_deviation", "kmedians_cost", "dunn_index", "clustering_error", "smallest_cluster"),
)
_PICTURE, PAGE, SCORES = "figures/agreement.png", Path("report/index.html"), Path("scores/scores.parquet")


def _chosen(results: Path) -> Iterator[Path]:
    """The published files: tables, claims, scoreboard, figures, the page, and the scores as Parquet.

    The evidence of single tables, the leaderboard and the fronts of all data sets are on the page.
    """
    yield from sorted((results / "tables").rglob("*.md"))
    yield from sorted(p for p in (results / "tables").rglob("*.csv") if not p.name.endswith(".evidence.csv"))
    for path in sorted((results / "figures").rglob("*.png")):
        if (path.parent.name != "fronts" or path.stem in _FRONTS) and picture_size(path):
            yield path
    yield results / PAGE
    yield results / SCORES
    yield results / "scores" / "runs.parquet"


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish as the options ask; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, default=Path("docs/results"), help="default: %(default)s")
    add("--wall-seconds", type=float, help="duration of the whole run, kept with its provenance")
    text = "also write the numbers of the run between the marks of this page; may be repeated"
    add("--readme", type=Path, action="append", default=[], metavar="PAGE", help=text)
    text = (
        "also publish the page and the scores of the run with this configuration, under the name of the file"
    )
    add("--page-of", type=Path, action="append", default=[], metavar="FILE", help=text)
    text = "laid over config/config.yaml, as in the run; may be repeated"
    add("--configfile", type=Path, action="append", default=[], metavar="FILE", help=text)
    try:
        print(publish(parser.parse_args(arguments)))
    except (UserError, OSError) as error:
        print(f"publish.py: {error}", file=sys.stderr)
        return 2
    return 0


def publish(args: argparse.Namespace) -> str:
    """Copy the results of a finished run, and say how many files there are.

    UserError if the run has not ended, its results are of another configuration, or the folder holds something else.
    """
    plan = Plan(user_config(args.configfile))
    results, out = Path(plan.results), args.out
    files = [path for path in _chosen(results) if path.is_file()]
    origin = _origin(plan)
    real, read = out.resolve(), results.resolve()
    if real.is_relative_to(read) or read.is_relative_to(real):
        raise UserError(f"--out: {out} overlaps {results}, which is read. Fix: name another folder")
    if out.exists() and any(out.iterdir()) and not (out / "provenance.json").is_file():
        raise UserError(f"--out: {out} holds other files than published results. Fix: name another folder")
    check_outputs({f"--readme {page}": page for page in args.readme}, args.configfile)
    origin["config"] = {name: origin["config"][name] for name in ("digest", "run")}
    origin["summary"] = describe(json.loads((results / "summary.json").read_text()))
    if args.wall_seconds:
        origin["wall_seconds"] = args.wall_seconds
    pages = {page: filled(page, results, out, origin, plan) for page in args.readme}
    runs = {file.stem: Plan(user_config([file])) for file in args.page_of}
    for run in runs.values():
        _origin(run)
    others = {
        at.with_stem(name): Path(run.results, at) for name, run in runs.items() for at in (PAGE, SCORES)
    }
    for path in others.values():
        if not path.is_file():
            raise UserError(f"--page-of: {path} does not exist: make this run first")

    def write(new: Path) -> None:
        for path in files:
            copy_small(path, new / path.relative_to(results), without=["key"] if path.stem == "runs" else ())
        for place, path in others.items():
            copy_small(path, new / place, without=_UNREAD)
        scoreboard = results / "tables" / "scoreboard.csv"
        if scoreboard.is_file():
            board = load_evidence([scoreboard])
            points = agreement.compared(board, _titles(board, plan), Names(**plan.names()))
            draw(points, new / _PICTURE)
        write_text(new / "provenance.json", shareable(json.dumps(origin, indent=2)) + "\n")
        copy_small(Path(__file__).parents[1] / WORKFLOW, new / WORKFLOW)
        write_text(new / CRATE, json.dumps(run_crate(new, origin, plan), indent=1) + "\n")

    replace_folder(real, write)
    for page, text in pages.items():
        write_text(page, text)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    much = f", more than the {_MOST_BYTES / 1e6:.0f} MB that suit a repository" if size > _MOST_BYTES else ""
    return f"{len(files) + len(others) + 3} files, {size / 1e6:.1f} MB in {out}{much}"


def _origin(plan: Plan) -> dict[str, Any]:
    """The provenance of the results of a plan; UserError if the run has not ended, or is of another configuration."""
    stated, complete = Path(plan.results, "provenance.json"), Path(plan.results, ".complete")
    try:
        origin = json.loads(stated.read_text())
        digest, ended = origin["config"]["digest"], complete.stat().st_mtime >= stated.stat().st_mtime
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{plan.results} holds no finished run: wait until it has ended ({error})") from None
    if not ended:
        raise UserError(f"{plan.results} holds no finished run: {complete} is older than {stated}")
    if digest != plan.settings()["digest"]:
        raise UserError(
            f"the results in {plan.results} are of another configuration: run snakemake again, then publish"
        )
    return origin


def draw(points: pd.DataFrame, file: Path) -> None:
    """Draw every compared value of the papers' tables against ours, as a PNG."""
    powers = agreement.decades(points)
    limits = (0.6 * agreement.FLOOR, 1.6 * 10.0 ** powers[-1])
    figure = Figure(figsize=(4.6, 4.4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlim=limits, ylim=limits, aspect="equal")
    axes.plot(limits, limits, color="0.7", lw=1, zorder=0)
    for verdict, (colour, mark) in agreement.LOOKS.items():
        of = points[points.verdict == verdict]
        x, y = (of[name].clip(agreement.FLOOR, 10.0 ** powers[-1]) for name in ("reported", "ours"))
        look: dict[str, Any] = {"color": COLOURS[colour], "marker": MARKS[mark]}
        axes.scatter(x, y, s=16, alpha=0.75, lw=0, label=f"{verdict} ({len(of)})", **look)
    axes.set_xlabel(
        f"reported value, or that of the published program (blue)\nzeros stand at {agreement.FLOOR:g}"
    )
    axes.set_ylabel("our value, mean over the starts")
    axes.set_title("Every compared value of the papers' tables", fontsize=10)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    with atomic_write(file) as stream:
        figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})


def copy_small(path: Path, to: Path, without: Iterable[str] = ()) -> None:
    """Copy a file: texts and scores without names of users, and a PNG with few colours, a third of the size.

    Columns of scores that are in `without` are left out.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".md", ".csv", ""):
        to.write_text(shareable(path.read_text()))
    elif path.suffix == ".png":
        with Image.open(path) as picture:
            # This way to choose the colours keeps those of thin lines.
            small = picture.convert("RGB")
            small.thumbnail((_WIDEST, picture.height))
            few = small.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE)
            few.save(to, optimize=True)
    elif path.suffix == ".parquet":
        table = read_arrow(path).drop_columns(list(without))
        for i, column in enumerate(table.schema):
            if column.type == pa.string():
                # Below its first line, a reason can name folders of this machine.
                told = first_line if column.name == "reason" else shareable
                texts = [text and told(text) for text in table[i].to_pylist()]
                table = table.set_column(i, column, pa.array(texts, pa.string()))
        write_arrow(to, table, level=22)
    else:
        shutil.copyfile(path, to)


def filled(page: Path, results: Path, out: Path, origin: Mapping[str, Any], plan: Plan) -> str:
    """The text of a page with the numbers of a run in `results` between its marks, and links to the folder `out`.

    `origin` is the content of `provenance.json`. UserError if the page has no marks, or the run no verdicts.
    """

    def shown(_: re.Match[str]) -> str:
        tables = results / "tables"
        needed = tables / "scoreboard.csv"
        if not needed.is_file():
            raise UserError(f"--readme: {page} shows numbers of {needed}, which this run has not made")
        return _results_block(tables, out, origin, plan)

    text, number = _MARKS.subn(shown, page.read_text(encoding="utf-8"))
    if not number:
        raise UserError(
            f"--readme: {page} has no lines '<!-- results: begin -->' and '<!-- results: end -->' to put the numbers "
            "between"
        )
    return text


def _results_block(tables: Path, out: Path, origin: Mapping[str, Any], plan: Plan) -> str:
    """The rows of the papers' tables by verdict, the claims that hold, the picture, and a sentence on the run."""
    at, board = out.as_posix(), load_evidence([tables / "scoreboard.csv"])
    rows, titles = row_verdicts(board), _titles(board, plan)
    files = {paper: tables / paper / "claims.csv" for paper in titles}
    claims = {paper: load_claims(file) for paper, file in files.items() if file.is_file()}
    lines = Table("rows", summary(board, claims, titles)).markdown()
    causes, commit = _count_causes(rows), origin["git_commit"]
    took = f" took {origin['wall_seconds'] / 60:.0f} minutes" if "wall_seconds" in origin else " was made"
    made_by = commit if commit.startswith("version ") else f"commit `{commit[:10]}`"
    sentences = (
        f"{sum(causes.values())} rows differ from the paper. The cause of the difference: "
        f"{in_words(causes) or 'none'}. See the [tables]({at}/tables), the [scoreboard]({at}/tables/scoreboard.md) "
        f"and the page `{at}/report/index.html`. The run ({origin['summary'][0]}){took} on {origin['cpu_count']} "
        f"processors; its report is that of {made_by}, and `{at}/scores/runs.parquet` names the commit of each fit."
    )
    wrapped = textwrap.wrap(sentences, width=120, break_long_words=False, break_on_hyphens=False)
    picture = f"![Reported values against ours, by verdict]({at}/{_PICTURE})"
    return "\n".join([*lines, "", picture, "", *wrapped]) + "\n"


def _count_causes(rows: pd.DataFrame) -> dict[str, int]:
    """The number of `row_verdicts` that differ from the paper, by how their cause is known (the texts of `CAUSES`)."""
    found = counted(rows.cause[rows.verdict == DIFFERS], CAUSES)
    return {CAUSES[cause]: n for cause, n in found.items()}


def _titles(board: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """The papers of the scoreboard and their short names."""
    return {paper: plan.config.papers[paper].short_name for paper in dict.fromkeys(board.paper)}


if __name__ == "__main__":
    sys.exit(main())
