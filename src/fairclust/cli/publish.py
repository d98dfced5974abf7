"""`fairclust publish`: copies the results of a finished run to a small folder that can be shared or committed."""

from __future__ import annotations

import json
import os
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from fairclust.cli import CommandError
from fairclust.cli.crate import CRATE, WORKFLOW, run_crate
from fairclust.cli.options import Publish
from fairclust.messages import in_words
from fairclust.outputs import check_outputs, replace_folder, write_text
from fairclust.pipeline.config import user_config
from fairclust.pipeline.plan import Plan
from fairclust.pipeline.scores import read_arrow, write_arrow
from fairclust.pipeline.summary import describe, load_summary
from fairclust.report.redaction import redact_config, redact_text, redacted

# What a page shows of a run stands between two marks. The first mark asks for all numbers, or it names data sets and
# methods, separated by slashes, whose rows of the overview are shown.
_MARKS = re.compile(
    r"(?P<begin><!-- (?P<what>results|overview): begin(?:; (?P<datasets>.*?) \| (?P<methods>.*?))? -->\n)"
    r".*?(?P<end><!-- (?P=what): end -->)",
    re.DOTALL,
)
_SHOWN = ("data set", "K", "method", "setting", "SSE", "Balance", "Fairness error", "starts")
# With more bytes than this, a note says that the results are too large for a repository.
_MOST_BYTES = 8_000_000
_COLOURS = 64
_PICTURE = "figures/agreement.png"


def _chosen(results: Path) -> Iterator[Path]:
    """The published files: tables, claims, scoreboard, fronts, the page, and the scores as Parquet.

    The evidence of single tables is in the scoreboard, and the leaderboard is on the page.
    """
    yield from sorted((results / "tables").rglob("*.md"))
    yield from sorted(p for p in (results / "tables").rglob("*.csv") if not p.name.endswith(".evidence.csv"))
    yield from filter(_shows_something, sorted((results / "figures").rglob("*.png")))
    yield results / "report" / "index.html"
    yield results / "scores" / "scores.parquet"
    yield results / "scores" / "runs.parquet"


def _shows_something(path: Path) -> bool:
    """Whether a figure has a panel with data. Those of data that could not be obtained have none."""
    from PIL import Image

    from fairclust.report.drawing import EMPTY

    with Image.open(path) as picture:
        return picture.info.get("Comment") != EMPTY


def run(args: Publish) -> list[str]:
    """Copy the results of a finished run.

    CommandError if the run has not ended, its results are of another configuration, or the folder holds something
    else.
    """
    plan = Plan(user_config(args.configfile))
    results, out = Path(plan.results), args.out
    files = [path for path in _chosen(results) if path.is_file()]
    try:
        origin = json.loads((results / "provenance.json").read_text())
        digest = origin["config"]["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        raise CommandError(
            f"{results} has no readable provenance.json: wait until the run has ended"
        ) from None
    if digest != plan.settings()["digest"]:
        raise CommandError(
            f"the results in {results} are of another configuration: run snakemake again, then publish"
        )
    # Other files than published results, and files or folders that are used, are not replaced.
    if out.exists() and any(out.iterdir()) and not (out / "provenance.json").is_file():
        raise CommandError(f"--out: {out} holds other files than published results; name another folder")
    folder = Path(os.path.realpath(out))
    for path in (results, *args.readme, *args.configfile):
        real = Path(os.path.realpath(path))
        if folder in (real, *real.parents) or (path is results and real in folder.parents):
            raise CommandError(
                f"--out: {out} would be replaced, and it overlaps {path}, which is read. Fix: name another folder"
            )
    check_outputs({f"--readme {page}": page for page in args.readme}, args.configfile)
    ours = Path(__file__).parents[3]
    snakefile = next((at / WORKFLOW for at in (Path(), ours) if (at / WORKFLOW).is_file()), None)
    if snakefile is None:
        raise CommandError(
            f"there is no {WORKFLOW}: run this in the folder that holds `config` and `workflow`"
        )
    origin["config"] = {"digest": digest, "run": redact_config(origin["config"]["run"])}
    origin["summary"] = describe(load_summary(results))
    if args.wall_seconds:
        origin["wall_seconds"] = args.wall_seconds
    pages = {page: filled(page, results, out, origin, plan) for page in args.readme}

    def write(new: Path) -> None:
        for path in files:
            copy_redacted(path, new / path.relative_to(results))
        scoreboard = results / "tables" / "scoreboard.csv"
        if scoreboard.is_file():
            _draw_picture(scoreboard, new / _PICTURE, plan)
        (new / "provenance.json").write_text(json.dumps(origin, indent=2) + "\n")
        copy_redacted(snakefile, new / WORKFLOW)
        crate = redact_config(run_crate(new, origin, plan))
        (new / CRATE).write_text(json.dumps(crate, indent=1) + "\n")

    replace_folder(folder, write)
    for page, text in pages.items():
        write_text(page, text)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    lines = [f"{len(files) + 3} files, {size / 1e6:.1f} MB in {out}"]
    if size > _MOST_BYTES:
        lines.append(f"that is more than {_MOST_BYTES / 1e6:.0f} MB: too much for a repository")
    return lines


def _draw_picture(scoreboard: Path, file: Path, plan: Plan) -> None:
    """Draw every compared value of the papers' tables against ours."""
    from fairclust.report import agreement
    from fairclust.report.tables import load_evidence

    board = load_evidence([scoreboard])
    file.parent.mkdir(parents=True, exist_ok=True)
    agreement.draw(agreement.compared(board, _titles(board, plan), plan.names_of()), file)


def copy_redacted(path: Path, to: Path) -> None:
    """Copy a file: texts and scores without paths of this machine, and a PNG with few colours, a third of the size."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".md", ".csv", ""):
        to.write_text(redacted(path), encoding="utf-8")
    elif path.suffix == ".png":
        from PIL import Image

        with Image.open(path) as picture:
            # This way to choose the colours keeps those of thin lines.
            few = picture.convert("RGB").quantize(_COLOURS, method=Image.Quantize.FASTOCTREE)
            few.save(to, optimize=True)
    elif path.suffix == ".parquet":
        table = read_arrow(path)
        for i, column in enumerate(table.schema):
            if column.type == pa.string():
                texts = [text and redact_text(text) for text in table[i].to_pylist()]
                table = table.set_column(i, column, pa.array(texts, pa.string()))
        write_arrow(to, table)
    else:
        shutil.copyfile(path, to)


def filled(page: Path, results: Path, out: Path, origin: Mapping[str, Any], plan: Plan) -> str:
    """The text of a page with the numbers of a run in `results` between its marks, and links to the folder `out`.

    `origin` is the content of `provenance.json`. CommandError if the page has no marks, or asks for verdicts or rows
    of the overview that the run does not have.
    """
    # Imported here, because the import takes a second and only `--readme` needs it.
    from fairclust.report.render import Table
    from fairclust.report.tables import overview_texts

    def shown(mark: re.Match[str]) -> str:
        tables = results / "tables"
        needed = tables / ("scoreboard.csv" if mark["what"] == "results" else "overview.csv")
        if not needed.is_file():
            raise CommandError(f"--readme: {page} shows numbers of {needed}, which this run has not made")
        if mark["what"] == "results":
            block = _results_block(tables, out, origin, plan)
        else:
            overview = overview_texts(pd.read_csv(needed), plan.names_of())
            asked = {"data set": mark["datasets"].split(" / "), "method": mark["methods"].split(" / ")}
            for column, names in asked.items():
                if missing := set(names) - set(overview[column]):
                    raise CommandError(
                        f"{page}: the overview has no {column} {sorted(missing)[0]!r}. Fix: correct the mark "
                        "'overview: begin'"
                    )
            # Of a data set with several K, the K with most of the methods is shown.
            chosen = overview[overview.method.isin(asked["method"])]
            of = [chosen[chosen["data set"] == dataset] for dataset in asked["data set"]]
            found = pd.concat([rows[rows.K.value_counts(sort=False).idxmax() == rows.K] for rows in of])
            block = "\n".join(Table(str(page), found[list(_SHOWN)].to_dict("records")).markdown()) + "\n"
        return mark["begin"] + block + mark["end"]

    text, number = _MARKS.subn(shown, page.read_text(encoding="utf-8"))
    if not number:
        raise CommandError(
            f"--readme: {page} has no lines '<!-- results: begin -->' and '<!-- results: end -->' to put the numbers "
            "between"
        )
    return text


def _results_block(tables: Path, out: Path, origin: Mapping[str, Any], plan: Plan) -> str:
    """The rows of the papers' tables by verdict, the claims that hold, the picture, and a sentence on the run."""
    from fairclust.report.claims import load_claims
    from fairclust.report.render import Table
    from fairclust.report.tables import count_causes, load_evidence, row_verdicts, summary

    at, board = out.as_posix(), load_evidence([tables / "scoreboard.csv"])
    rows, titles = row_verdicts(board), _titles(board, plan)
    files = {paper: tables / paper / "claims.csv" for paper in titles}
    claims = {paper: load_claims(file) for paper, file in files.items() if file.is_file()}
    lines = Table("rows", summary(board, claims, titles)).markdown()
    causes, commit = count_causes(rows), origin["git_commit"]
    took = f" took {origin['wall_seconds'] / 60:.0f} minutes" if "wall_seconds" in origin else " was made"
    made_by = commit if commit.startswith("version ") else f"commit `{commit[:10]}`"
    sentences = (
        f"{sum(causes.values())} rows differ from the paper. The cause of the difference: "
        f"{in_words(causes) or 'none'}. See the [tables]({at}/tables), the [scoreboard]({at}/tables/scoreboard.md) "
        f"and the page `{at}/report/index.html`. The run ({origin['summary'][0]}){took} on {origin['cpu_count']} "
        f"processors, with {made_by}."
    )
    wrapped = textwrap.wrap(sentences, width=120, break_long_words=False, break_on_hyphens=False)
    picture = f"![Reported values against ours, by verdict]({at}/{_PICTURE})"
    return "\n".join([*lines, "", picture, "", *wrapped]) + "\n"


def _titles(board: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """The papers of the scoreboard and their short names."""
    return {paper: plan.config.papers[paper].short_name for paper in dict.fromkeys(board.paper)}
