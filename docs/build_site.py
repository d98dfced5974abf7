"""Hooks of MkDocs: pages from outside of `docs/`, examples that are executed, the reference of everything public.

Pages link to the files of the repository, so that they can be read without the site. This module turns these links into
links to the pages of the site.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import posixpath
import re
import subprocess
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# Pages of the site that lie elsewhere in the repository.
OUTSIDE = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "configuration.md": "config/README.md",
    "benchmarks.md": "benchmarks/README.md",
}
# What the site has instead of a file or folder of the repository.
INSTEAD = {
    "README.md": "index.md",
    "CITATION.cff": "cite.md",
    "docs/results": "published.md",
    "docs/results/tables": "results/tables/scoreboard.md",
}
EXECUTED = ("gallery/", "needs/")
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
# Matches links. It also matches spans of code, so that nothing inside of them is taken for a link.
LINK = re.compile(r"`[^`]+`|(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(^ *```.*?^ *```)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not lie in `docs/`, and execute the examples; MkDocs calls this once."""
    for uri, origin in OUTSIDE.items():
        files.append(File.generated(config, uri, content=(ROOT / origin).read_text(encoding="utf-8")))
    for uri, content in {"cite.md": cite_page(), **reference_pages()}.items():
        files.append(File.generated(config, uri, content=content))
    for file in [file for file in files.documentation_pages() if file.src_uri.startswith(EXECUTED)]:
        text, pictures = executed(file.content_string, Path(file.src_uri).stem)
        file.content_string = text
        for name, content in pictures.items():
            uri = posixpath.join(posixpath.dirname(file.src_uri), name)
            files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links to the repository by links of the site, outside of code; MkDocs calls this for every page."""
    uri = page.file.src_uri
    if uri.startswith("results/tables/"):
        page.meta["hide"] = ["toc"]  # wide tables take its place
    origin = OUTSIDE.get(uri, f"docs/{uri}")
    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(lambda found: _led(found, origin, uri, files), part) for part in parts[::2]]
    return "".join(parts)


def _led(found: re.Match[str], origin: str, uri: str, files: Files) -> str:
    """A link to a file of the repository as a link to its page; only the text if the site has no such page."""
    sign, text, link = found.groups()
    if link is None or "://" in link or link.startswith("#"):
        return found[0]
    path, _, anchor = link.partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
    pages = {elsewhere: own for own, elsewhere in OUTSIDE.items()} | INSTEAD
    at = pages.get(target, target.removeprefix("docs/"))
    if files.get_file_from_path(at) is None:
        return text
    relative = posixpath.relpath(at, posixpath.dirname(uri) or ".")
    return f"{sign}[{text}]({relative}{'#' if anchor else ''}{anchor})"


# Examples


def executed(text: str, stem: str) -> tuple[str, dict[str, bytes]]:
    """A page with what each of its blocks prints, and the pictures that they draw.

    Parameters
    ----------
    text : str
        The page in Markdown. Its blocks of Python share their variables, and all blocks share a folder with the table
        `people.csv`.
    stem : str
        How names of pictures begin.

    Returns
    -------
    text : str
    pictures : dict of str to bytes
        File name to PNG.

    Raises
    ------
    RuntimeError
        A block of shell commands fails; the message holds the block and what it printed. An exception in a block of
        Python is passed on.
    """
    pictures: dict[str, bytes] = {}
    variables: dict[str, Any] = {"__name__": "example"}

    def run(found: re.Match[str]) -> str:
        language, code = found.groups()
        printed = _run_python(code, variables) if language == "python" else _run_shell(code)
        shown = f"\n```text\n{printed.rstrip()}\n```\n" if printed.strip() else ""
        for path in sorted(Path().glob("*.png")):
            name = f"{stem}-{len(pictures) + 1}.png"
            pictures[name] = path.read_bytes()
            path.unlink()
            shown += f"\n![What the block above draws]({name})\n"
        return found[0] + shown

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        # The first example of the first page writes the table that the others read.
        _run_python(next(BLOCK.finditer((ROOT / "docs/index.md").read_text()))[2], {})
        return BLOCK.sub(run, text), pictures


def _run_python(code: str, variables: dict[str, Any]) -> str:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Close figures that other examples in this process have left open.
    pyplot.close("all")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "example", "exec"), variables)
    for number in pyplot.get_fignums():
        pyplot.figure(number).savefig(f"figure-{number}.png", dpi=120, bbox_inches="tight")
    pyplot.close("all")
    return printed.getvalue()


def _run_shell(code: str) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Standard error is shown only for a failure. Otherwise it holds progress, which is for terminals.
    done = subprocess.run(
        ["bash", "-e", "-c", code], capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    if done.returncode:
        raise RuntimeError(f"an example fails:\n{code}\n{done.stdout}{done.stderr}")
    return done.stdout


# The reference


def reference_pages() -> dict[str, str]:
    """A page of the reference for each public class, for the functions of each kind, and one that lists everything."""
    fairclust = importlib.import_module("fairclust")
    modules = {name: importlib.import_module(f"fairclust.{name}") for name in fairclust._MODULES}
    of_modules = {name for module in modules.values() for name in getattr(module, "__all__", ())}
    tools = [name for name in fairclust.__all__ if name not in modules and name not in of_modules]
    tools += modules["plot"].__all__
    kinds = {
        "methods": ("Methods", fairclust, fairclust.methods.__all__),
        "metrics": ("Metrics", modules["metrics"], modules["metrics"].__all__),
        "tools": ("Tools", fairclust, sorted(dict.fromkeys(tools))),
        "datasets": ("Data sets", modules["datasets"], modules["datasets"].__all__),
        "tables": ("Raw tables", modules["tables"], modules["tables"].__all__),
    }
    pages = {
        "api/index.md": "# Everything public\n\nNames of methods and tools are imported from `fairclust`. Metrics, "
        "data sets and raw tables have modules of their own, such as `fairclust.metrics`.\n"
    }
    for kind, (title, module, names) in kinds.items():
        own = [name for name in names if _has_a_page(getattr(module, name))]
        about = "" if module is fairclust else f"{inspect.getdoc(module)}\n\n"
        shared = "\n".join(_described(module, name) for name in names if name not in own)
        if shared:
            pages[f"api/{kind}.md"] = f"# {title}\n\n{about}{shared}"
        pages |= {
            f"api/{name}.md": _described(module, name, level=1) + _classes_above(getattr(module, name))
            for name in own
        }
        lines = [_listed(name if name in own else kind, module, name) for name in names]
        pages["api/index.md"] += f"\n## {title}\n\n" + "\n".join(lines) + "\n"
    return pages


def _classes_above(member: type) -> str:
    """Links to the classes whose docstrings have the parameters and attributes that a method shares with others."""
    import fairclust

    above = [of.__name__ for of in member.__mro__[1:] if of.__name__ in fairclust.__all__]
    links = " and ".join(f"[`{name}`]({name}.md)" for name in above)
    return f"\nParameters and attributes that are not described here are those of {links}.\n" if above else ""


def _has_a_page(member: Any) -> bool:
    """Whether it is a class; exceptions stand beside the functions that raise them."""
    return inspect.isclass(member) and not issubclass(member, BaseException)


def _home(module: Any, name: str) -> str:
    """The dotted name under which something is defined: mkdocstrings reads source code and follows no lazy import."""
    member = getattr(module, name)
    if inspect.isclass(member) or inspect.isfunction(member):
        return f"{member.__module__}.{member.__qualname__}"
    homes = getattr(module, "_HOMES", {})
    return f"{module.__name__}.{homes[name]}.{name}" if name in homes else f"{module.__name__}.{name}"


def _listed(page: str, module: Any, name: str) -> str:
    member = getattr(module, name)
    documented = inspect.isclass(member) or inspect.isfunction(member)
    summary = (inspect.getdoc(member) or "").partition("\n")[0] if documented else "A table."
    return f"- [`{name}`]({page}.md#{_home(module, name)}): {summary}"


def _described(module: Any, name: str, level: int = 2) -> str:
    """What mkdocstrings replaces by a description. Of a class it shows the methods, because parameters are above."""
    text = f"::: {_home(module, name)}\n    options:\n      heading: {name}\n      heading_level: {level}\n"
    member = getattr(module, name)
    if not inspect.isclass(member):
        return text
    kinds = (FunctionType, property, cached_property, classmethod, staticmethod)
    shown = [key for key, value in vars(member).items() if key[0] != "_" and isinstance(value, kinds)]
    return f"{text}      members: [{', '.join(shown)}]\n"


# How to cite


def cite_page() -> str:
    """What CITATION.cff says, as BibTeX."""
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    entries = [_bibtex("software", "fairclust", {**about, "year": str(about["date-released"])[:4]})]
    for paper in about["references"]:
        kind = "article" if paper["type"] == "article" else "inproceedings"
        key = f"{paper['authors'][0]['family-names'].lower()}{paper['year']}"
        entries.append(_bibtex(kind, key, paper))
    return (
        f"# How to cite\n\n{about['message']} The file `CITATION.cff` in the repository holds the same entries. The "
        "[note on group prices](group_prices.md) describes the method that is this project's own.\n\n```bibtex\n"
        + "\n".join(entries)
        + "```\n"
    )


def _bibtex(kind: str, key: str, about: dict[str, Any]) -> str:
    authors = [
        f"{a['family-names']}, {a['given-names']}" if "family-names" in a else f"{{{a['name']}}}"
        for a in about["authors"]
    ]
    fields = {
        "title": about["title"],
        "author": " and ".join(authors),
        "year": about["year"],
        "version": about.get("version"),
        "booktitle": about.get("collection-title"),
        "journal": about.get("journal"),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"]) + "\n"
