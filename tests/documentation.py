"""The pages of the documentation and the examples on them."""

import re
from pathlib import Path

from pydantic import BaseModel

ROOT = Path(__file__).parents[1]
FOLDERS = ("", "docs", "docs/gallery", "docs/needs", "config", "profiles", "benchmarks", "results")
PAGES = sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md"))
BLOCK = re.compile(r"^ *```(.*?)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


def blocks(page, language):
    """Return the texts of the blocks in a language."""
    return [text for found, text in BLOCK.findall((ROOT / page).read_text()) if found == language]


def example_paper():
    """Return the paper of the page on the configuration, as text, and the CSV of what it reports."""
    (values,) = blocks("config/README.md", "csv")
    return next(text for text in blocks("config/README.md", "yaml") if text.startswith("papers:")), values


def write_examples(folder):
    """Write the class that CONTRIBUTING shows and the paper of the page on the configuration, as a user would."""
    shown = next(text for text in blocks("CONTRIBUTING.md", "python") if "class Stripes" in text)
    assert shown.startswith("# my_methods/stripes.py")
    paper, values = example_paper()
    for name, text in (
        ("my_methods/stripes.py", shown),
        ("my_papers/doe.yaml", paper),
        ("my_papers/doe.csv", values),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def keys_of(*modules):
    """Return the names of the keys of all models of the configuration in these modules."""
    members = [member for module in modules for member in vars(module).values() if isinstance(member, type)]
    models = [member for member in members if issubclass(member, BaseModel)]
    return {info.alias or name for model in models for name, info in model.model_fields.items()}
