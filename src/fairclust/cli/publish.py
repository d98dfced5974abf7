"""`fairclust publish`: copies the results of a finished run to a small folder that can be shared or committed."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fairclust.cli import CommandError
from fairclust.cli.configuration import load
from fairclust.cli.crate import CRATE, WORKFLOW, run_crate
from fairclust.outputs import atomic_write, check_outputs, replace_folder
from fairclust.pipeline.rule_inputs import RuleInputs
from fairclust.pipeline.summary import describe, job_seconds
from fairclust.report.redaction import redact_config, redact_csv, redact_text

# The numbers of the run in a README stand between these marks.
_BEGIN, _END = "<!-- results: begin -->\n", "<!-- results: end -->"
# The first mark names the data sets and the methods whose rows of the overview a page shows, separated by slashes.
_OVERVIEW = re.compile(r"(<!-- overview: begin; (.*?) \| (.*?) -->\n).*?(<!-- overview: end -->)", re.DOTALL)
_SHOWN = ("data set", "K", "method", "setting", "SSE", "Balance", "Fairness error", "starts")
# With more bytes than this, a note says that the results are too large for a repository.
_MOST_BYTES = 8_000_000
_COLOURS = 32


def _chosen(results: Path) -> Iterator[Path]:
    """The published files: tables, claims, scoreboard, fronts, the page, and the scores as Parquet.

    The verdicts of single tables are in the scoreboard, and the leaderboard is on the page.
    """
    yield from sorted((results / "tables").rglob("*.md"))
    yield from sorted(p for p in (results / "tables").rglob("*.csv") if not p.name.endswith(".verdicts.csv"))
    yield from sorted((results / "figures").rglob("*.png"))
    yield results / "report" / "index.html"
    yield results / "scores" / "scores.parquet"
    yield results / "scores" / "runs.parquet"


def run(args: argparse.Namespace) -> list[str]:
    """Copy the results of a finished run.

    CommandError if the run has not ended, its results are of another configuration, or the folder holds something
    else.
    """
    inputs = RuleInputs(load(args.configfile))
    results, out = Path(inputs.results), args.out
    files = [path for path in _chosen(results) if path.is_file()]
    try:
        origin = json.loads((results / "provenance.json").read_text())
        digest = origin["config"]["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        raise CommandError(
            f"{results} has no readable provenance.json: wait until the run has ended"
        ) from None
    if digest != inputs.configuration_digest():
        raise CommandError(
            f"the results in {results} are of another configuration: run snakemake again, then publish"
        )
    _check_folder(out, results, [*args.readme, *args.configfile])
    check_outputs({f"--readme {page}": page for page in args.readme}, args.configfile)
    pages = {page: page.read_text(encoding="utf-8") for page in args.readme}
    for page, text in pages.items():
        _check_page(text, results, str(page))
    ours = Path(__file__).parents[3]
    snakefile = next((at / WORKFLOW for at in (Path(), ours) if (at / WORKFLOW).is_file()), None)
    if snakefile is None:
        raise CommandError(
            f"there is no {WORKFLOW}: run this in the folder that holds `config` and `workflow`"
        )
    seconds = job_seconds(results.glob("benchmarks/**/*.tsv"))
    origin["config"] = {"digest": digest, "run": redact_config(origin["config"]["run"])}
    origin["summary"] = describe(results / "summary.json")
    origin["job_seconds"] = {rule: round(value, 1) for rule, value in seconds.items()}
    if args.wall_seconds:
        origin["wall_seconds"] = args.wall_seconds

    def write(folder: Path) -> None:
        for path in files:
            _copy(path, folder / path.relative_to(results))
        (folder / "provenance.json").write_text(json.dumps(origin, indent=2) + "\n")
        _copy(snakefile, folder / WORKFLOW)
        crate = redact_config(run_crate(folder, origin, inputs))
        (folder / CRATE).write_text(json.dumps(crate, indent=1) + "\n")

    replace_folder(Path(os.path.realpath(out)), write)
    for page, text in pages.items():
        text = filled(text, out, inputs, str(page))
        with atomic_write(page) as file:
            file.write(text.encode())
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    lines = [f"{len(files) + 3} files, {size / 1e6:.1f} MB in {out}"]
    if size > _MOST_BYTES:
        lines.append(f"that is more than {_MOST_BYTES / 1e6:.0f} MB: too much for a repository")
    return lines


def _check_folder(out: Path, results: Path, pages: Sequence[Path]) -> None:
    """Refuse to replace a folder with other files than published results, or with a file or folder that is used."""
    if out.exists() and any(out.iterdir()) and not (out / "provenance.json").is_file():
        raise CommandError(f"--out: {out} holds other files than published results; name another folder")
    folder = Path(os.path.realpath(out))
    for path in (results, *pages):
        real = Path(os.path.realpath(path))
        if folder in (real, *real.parents) or (path is results and real in folder.parents):
            raise CommandError(
                f"--out: {out} would be replaced, and it overlaps {path}, which is read. Fix: name another folder"
            )


def _check_page(text: str, results: Path, name: str) -> None:
    """Refuse a page that has no marks, or shows verdicts that the run has not, before anything is written."""
    if not _shows_results(text):
        return
    with_results(text, "", name)
    if not (results / "tables" / "scoreboard.csv").is_file():
        raise CommandError(
            f"--readme: {name} shows the verdicts on papers, and {results} has none, because no paper was run. Fix: "
            "leave out the option"
        )


def _shows_results(text: str) -> bool:
    """Whether a page shows the numbers of the run, and not only rows of the overview."""
    return _BEGIN in text or not _OVERVIEW.search(text)


def _copy(path: Path, to: Path) -> None:
    """Copy a file, a text without private names, and a PNG with few colours, which is a third of the size."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".md", ".csv", ""):
        text = path.read_text(encoding="utf-8")
        to.write_text(redact_csv(text) if path.suffix == ".csv" else redact_text(text), encoding="utf-8")
    elif path.suffix == ".png":
        from PIL import Image

        with Image.open(path) as picture:
            picture.convert("RGB").quantize(_COLOURS).save(to, optimize=True)
    else:
        shutil.copyfile(path, to)


def filled(text: str, folder: Path, inputs: RuleInputs, name: str) -> str:
    """The text of a page, called `name`, with the numbers of a published run in `folder` between its marks.

    CommandError if the page has no marks, or asks for rows that the overview does not have.
    """
    # Imported here, because the import takes a second and only `--readme` needs it.
    from fairclust.report.tables import load_overview, overview_texts

    if _shows_results(text):
        titles = {paper: spec.short_name for paper, spec in inputs.config.papers.items()}
        text = with_results(text, results_block(folder, titles), name)
    if not _OVERVIEW.search(text):
        return text
    overview = overview_texts(load_overview(folder / "tables" / "overview.csv"), inputs.names)

    def replace(found: re.Match[str]) -> str:
        begin, datasets, methods, end = found.groups()
        return begin + overview_block(overview, datasets.split(" / "), methods.split(" / "), name) + end

    return _OVERVIEW.sub(replace, text)


def with_results(text: str, block: str, name: str) -> str:
    """The text of a README, called `name`, with a new block between its two marks. CommandError without the marks."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not end:
        raise CommandError(f"{name} has no lines {_BEGIN.strip()!r} and {_END!r} to put the numbers between")
    return f"{before}{begin}{block}{end}{after}"


def overview_block(overview: pd.DataFrame, datasets: Sequence[str], methods: Sequence[str], name: str) -> str:
    """Some rows of the overview, as readers see it, in Markdown, for pages about a few of the methods.

    If a data set has several K, the K with most of these methods is shown. CommandError, with the name of the page, if
    the overview lacks one of the data sets or methods.
    """
    from fairclust.report.table import Table

    for column, asked in (("data set", datasets), ("method", methods)):
        if missing := set(asked) - set(overview[column]):
            raise CommandError(
                f"{name}: the overview has no {column} {sorted(missing)[0]!r}. Fix: correct the mark 'overview: begin'"
            )
    chosen = overview[overview.method.isin(methods)]
    of = [chosen[chosen["data set"] == dataset] for dataset in datasets]
    shown = pd.concat([rows[rows.K.value_counts(sort=False).idxmax() == rows.K] for rows in of])
    return "\n".join(Table.of_records(name, shown[list(_SHOWN)].to_dict("records")).markdown()) + "\n"


def results_block(folder: Path, titles: Mapping[str, str]) -> str:
    """The numbers of a published run for the README: rows of the papers' tables, and claims, counted by verdict.

    They are Markdown, with links to the tables in `folder`, which `run` has written. `titles` maps each paper to its
    short name.
    """
    # Imported here, because the import takes a second and only `--readme` needs it.
    from fairclust.report.claims import count_claims, load_claims
    from fairclust.report.render import escape_markdown
    from fairclust.report.rows import CAUSES, VERDICTS
    from fairclust.report.scoreboard import count_causes, count_verdicts, row_verdicts, value_verdicts
    from fairclust.report.verdicts import load_verdicts

    at = folder.as_posix()
    board = load_verdicts([folder / "tables" / "scoreboard.csv"])
    rows = row_verdicts(board)
    counted = {"rows": count_verdicts(rows), "values": count_verdicts(value_verdicts(board))}
    lines = ["| paper | compared | number | verdicts |", "| --- | --- | --- | --- |"]
    for paper in dict.fromkeys(board.paper):
        title = escape_markdown(titles.get(paper, paper))
        for unit, counts in counted.items():
            for row in counts[counts.paper == paper].to_dict("records"):
                kind = f"at {row['kind']}" if row["kind"] == "matched fairness" else row["kind"]
                verdicts = ", ".join(f"{row[name]} {name}" for name in VERDICTS if row[name])
                lines.append(f"| {title} | {unit} {kind} | {row['rows']} | {verdicts} |")
        path = folder / "tables" / paper / "claims.csv"
        if path.is_file():
            found = count_claims(load_claims(path))
            verdicts = ", ".join(f"{count} {name}" for name, count in found.items())
            link = f"[claims]({at}/tables/{paper}/claims.md)"
            lines.append(f"| {title} | {link} | {sum(found.values())} | {verdicts} |")
    causes = count_causes(rows)
    words = ", ".join(f"{n} {CAUSES[cause]}" for cause, n in causes.items()) or "none"
    sentences = (
        f"{sum(causes.values())} rows differ from the paper. The cause of the difference: {words}. See the "
        f"[scoreboard]({at}/tables/scoreboard.md), the [tables]({at}/tables) and the page `{at}/report/index.html`. "
        f"{_origin_words(folder)}"
    )
    wrapped = textwrap.wrap(sentences, width=120, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, "", *wrapped]) + "\n"


def _origin_words(folder: Path) -> str:
    """A sentence on the run: the number of fits, the time, the machine and the software."""
    origin = json.loads((folder / "provenance.json").read_text())
    cells, _, statuses = origin["summary"][0].partition(" cells: ")
    took = f" took {origin['wall_seconds'] / 60:.0f} minutes" if "wall_seconds" in origin else " was made"
    commit = origin["git_commit"]
    made_by = commit if commit.startswith("version ") else f"commit `{commit[:10]}`"
    return f"The run ({cells} fits: {statuses}){took} on {origin['cpu_count']} processors, with {made_by}."
