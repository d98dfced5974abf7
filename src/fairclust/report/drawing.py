"""The material from which all plots are made, and the sheet of panels on which they are drawn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairclust.fronts import tick_text
from fairclust.looks import in_matplotlib
from fairclust.outputs import atomic_write
from fairclust.pipeline.papers import FigureSpec
from fairclust.plot import in_figure
from fairclust.report.material import Material

SOFT = "0.35"
EMPTY = "nothing to show"
BY_ROWS = "n_rows"
# A quoted path in a reason, which would say more about the machine than about the data.
_PLACE = re.compile(r"'[^' ]*/[^' ]*'")

matplotlib.rcParams.update(
    {
        "font.size": 10,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        # With random ids in the file, every rerun would look like a change.
        "svg.hashsalt": "fairclust",
        # LaTeX would read users' titles as its own source.
        "text.usetex": False,
    }
)

# Inches around the axes of one panel, and widths of letters at the legend's and the notes' font sizes.
_LEFT, _RIGHT, _TOP, _BOTTOM, _TITLE = 0.78, 0.22, 0.36, 0.58, 0.42
_LETTER, _LINE = 0.068, 0.17


class NothingToShow(Exception):
    """A panel has no data; the message says why."""


@dataclass
class Sheet:
    """A figure of panels of equal size, with one legend and notes below them.

    Sizes are in inches and known before anything is drawn, so no layout engine is needed. A layout engine would draw
    every figure twice. `size` is that of the axes of one panel.
    """

    title: str
    n_columns: int
    size: tuple[float, float] = (3.5, 2.6)
    left: float = _LEFT
    figure: Figure = field(default_factory=Figure)
    legend: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)  # a note to its details
    # The numbers of starts behind the lines, marks or points.
    starts: dict[str, set[int]] = field(default_factory=dict)

    def add(self, title: str) -> Axes:
        """Add the next panel, row by row."""
        axes = self.figure.add_axes((0, 0, 1, 1), label=str(len(self.figure.axes)))
        self.set_title(axes, title)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: tick_text(value))
        return axes

    def set_title(self, axes: Axes, title: str) -> None:
        """Write a panel's title, on several lines if it is long."""
        whole = title.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
        axes.set_title(in_figure("\n".join(wrap(whole, int(self.size[0] / 0.085)))))

    def note(self, text: str, panel: Panel | None = None, detail: str = "") -> None:
        """Add a note below the panels, unless it is already there, with its detail for a panel."""
        details = self.notes.setdefault(text, [])
        # A data set has a panel for every metric.
        if panel and (words := f"{detail} ({panel.title})") not in details:
            details.append(words)

    def lay_out(self) -> Figure:
        """Give the panels, the legend and the notes their places."""
        count = max(1, len(self.figure.axes))
        n_columns = min(self.n_columns, count)
        cell = (self.left + self.size[0] + _RIGHT, _TOP + self.size[1] + _BOTTOM)
        # The title and the notes need some width even if there is a single panel.
        width = max(cell[0] * n_columns, 5.2)
        title = wrap(self.title, int(width / 0.1))
        starts = []
        for what, numbers in self.starts.items():
            least, most = min(numbers), max(numbers)
            words = f"{most} starts" if least == most else f"{least} to {most} starts"
            means = f"means over {words}, with a standard deviation to each side"
            starts.append(f"{what}: {'one start' if most == 1 else means}")
        notes = [f"{note}: {'; '.join(details)}" if details else note for note, details in self.notes.items()]
        notes = [line for note in [*starts, *notes] for line in wrap(note, int(width / 0.062))]
        longest = max(map(len, self.legend), default=0)
        per_line = max(1, min(len(self.legend), int((width - 0.3) / (0.5 + _LETTER * longest))))
        legend = -(-len(self.legend) // per_line) * _LINE + 0.15 if self.legend else 0.0
        below = legend + _LINE * len(notes) + 0.1
        above = _TITLE + 0.2 * max(0, len(title) - 1)
        height = above + cell[1] * -(-count // n_columns) + below
        self.figure.set_size_inches(width, height)
        for number, axes in enumerate(self.figure.axes):
            row, column = divmod(number, n_columns)
            x = column * cell[0] + self.left
            y = height - above - (row + 1) * cell[1] + _BOTTOM
            place = (x / width, y / height, self.size[0] / width, self.size[1] / height)
            axes.set_position(place)
        self.figure.suptitle(in_figure("\n".join(title)), y=1 - 0.1 / height, va="top", fontsize=11)
        if self.legend:
            self.figure.legend(
                list(self.legend.values()), [in_figure(" ".join(name.split())) for name in self.legend],
                loc="upper left", ncols=per_line,
                bbox_to_anchor=(0.1 / width, below / height), fontsize=8, frameon=False, borderaxespad=0,
                columnspacing=1.2, handletextpad=0.5,
            )  # fmt: skip
        if notes:
            y = (_LINE * len(notes) + 0.05) / height
            style: dict[str, Any] = {"fontsize": 8, "color": SOFT, "va": "top", "linespacing": 1.3}
            self.figure.text(0.15 / width, y, in_figure("\n".join(notes)), **style)
        return self.figure

    def save(self, stem: Path, formats: Sequence[str]) -> None:
        """Write the figure. Equal figures give equal files."""
        self.lay_out()
        metadata: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
        # tools/publish.py and the page leave out a figure of which no panel has anything to show.
        metadata["png"] = {} if self.figure.axes else {"Comment": EMPTY}
        for ending in formats:
            with atomic_write(stem.with_name(f"{stem.name}.{ending}")) as file:
                self.figure.savefig(file, format=ending, metadata=metadata[ending], dpi=150)


class Panel(NamedTuple):
    """What a panel shows: the cells of a data set, and perhaps of one K and one method, in perhaps one metric."""

    dataset: str
    k: int | None
    method: str
    y: str
    cells: pd.DataFrame
    title: str


class Plot(NamedTuple):
    """A kind of figure: its panels, and the function that draws one of them."""

    draw: Callable[[FigureData, Sheet, Axes, Panel], None]
    size: tuple[float, float]  # of the axes of a panel, in inches
    # Each data set has a panel. Each K has one of its own ('each'), or only the smallest K is drawn unless the figure
    # names some ('first'), or all are in one panel ('joined').
    ks: str = "each"
    left: float = _LEFT  # the room on the left of the axes for their numbers, in inches
    methods: bool = False  # whether each method has a panel of its own
    # Whether each metric of `y` has one, and the metrics of a figure that names none; None if a panel shows them all.
    metrics: tuple[str, ...] | None = None
    least_methods: int = 0  # panels with fewer methods are drawn only if all are like this
    per_row: int = 2  # panels in a row, which must be legible at the width of a page
    in_rows: bool = False  # whether a row has the panels of a single data set


@dataclass(frozen=True, kw_only=True)
class FigureData(Material):
    """The specification of a figure, with the material from which it is drawn."""

    spec: FigureSpec

    def look(self, method: str) -> tuple[str, str]:
        """Colour and mark of a method."""
        return in_matplotlib(self.names.look(method))

    def draw(self, plot: Plot) -> Sheet:
        """Draw all panels. One without anything to show is left out, and a note says why."""
        ys = ("",) if plot.metrics is None else self.spec.y or plot.metrics
        panels = list(self._panels(plot, ys))
        panels = [panel for panel in panels if panel.cells.method.nunique() >= plot.least_methods] or panels
        in_row = max(Counter(panel.dataset for panel in panels).values())
        n_columns = min(plot.per_row, in_row) if plot.in_rows else plot.per_row
        size = plot.size
        if len(ys) > n_columns and len(panels) > len(ys):
            # Each K has a row of smaller panels, so that the figure fits on a screen.
            n_columns, size = len(ys), (0.75 * size[0], 0.75 * size[1])
        sheet = Sheet(self.spec.title, n_columns, size, plot.left)
        for panel in panels:
            axes = sheet.add(panel.title)
            try:
                plot.draw(self, sheet, axes, panel)
            except NothingToShow as error:
                axes.remove()
                sheet.note(f"{panel.title}: {EMPTY}: {_PLACE.sub('a file', str(error))}")
        return sheet

    def _panels(self, plot: Plot, ys: Sequence[str]) -> Iterator[Panel]:
        if self.spec.x == BY_ROWS:  # all data sets are in one panel
            ks = self.cells.n_clusters.unique()
            title = f"{self.cells.dataset.nunique()} data sets" + (f", K = {ks[0]}" if len(ks) == 1 else "")
            yield from (Panel("", None, "", y, self.cells, title) for y in ys)
            return
        for dataset in self.spec.datasets:
            cells_of_data = self.cells[self.cells.dataset == dataset]
            every: list[int | None]
            every = [int(k) for k in sorted(cells_of_data.n_clusters.unique())] if plot.ks != "joined" else []
            if plot.ks == "first" and not self.spec.n_clusters:
                every = every[:1]
            for k in every or [None]:
                of_k = cells_of_data if k is None else cells_of_data[cells_of_data.n_clusters == k]
                for method in (self.spec.methods or self.methods(of_k) or [""]) if plot.methods else [""]:
                    cells = of_k[of_k.method == method] if plot.methods else of_k
                    label = self.names.method(method) if method else ""
                    parts = [self.names.dataset(dataset), label, f"K = {k}" if k is not None else ""]
                    for y in ys:
                        yield Panel(dataset, k, method, y, cells, ", ".join(filter(None, parts)))

    def methods(self, cells: pd.DataFrame) -> list[str]:
        """The methods of the cells, in the order of the figure, or else of the run."""
        ran = set(cells.method)
        return [name for name in self.spec.methods or self.names.in_order(ran) if name in ran]
