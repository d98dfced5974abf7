"""Paths of a machine, which tell of its users, taken out of what is handed on."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

FOLDER = "(folder)"

# A name with one of these endings is a file's, which readers may see; the last of /home/anna.smith is not.
_FILE = re.compile(
    r".+\.(csv|tsv|txt|data|names|arff|jsonl?|ya?ml|parquet|np[yz]|zip|gz|bz2|xz|tar|xlsx?|py|smk|md|tex|corrupt)",
    re.IGNORECASE,
)
_ROOT = (
    r"(?:file://)?(?:~(?:[A-Za-z_][\w.-]*)?/|/?[A-Za-z]:[\\/]+(?=[^\s\\/])"
    r"|/+(?=[^\s/'\"])|\\\\+(?=[^\s\\'\"]))"
)
_NAME = r"(?:[^\s/'\",;|<>\\]|\\ )+"
_WINDOWS_NAME = r"[^\s\\/'\",;|<>:*?]+"
# Before a backslash a name may hold spaces; the last one ends at a space.
_BACKSLASHED = rf"(?:\\+{_WINDOWS_NAME}(?: +{_WINDOWS_NAME})*(?=\\))*\\+{_WINDOWS_NAME}\\*"
# In a running text a path has two names at least: 'rows /s' and 'K:\n' hold none.
_BARE = [
    rf"(?:file:/+)?[A-Za-z]:(?:(?=\\+{_WINDOWS_NAME}[\\ ]){_BACKSLASHED}|(?:/+{_WINDOWS_NAME}){{2,}}/*)",
    rf"(?:file://)?~(?:[A-Za-z_][\w.-]*)?(?:/+{_NAME})+/*",
    rf"(?:file://|(?<!:)/)?/{_NAME}(?:/+{_NAME})+/*",
    rf"\\{{2,4}}[\w.$-]+{_BACKSLASHED}",
]
_IN_TEXT = re.compile(
    "|".join(
        [
            r"(?P<url>\b(?!file:)[A-Za-z][A-Za-z0-9+.-]+://[^\s'\"<>|]+)",
            # A quote before a letter is an apostrophe, and goes with the name.
            rf"(?<=(?P<quote>['\"])){_ROOT}(?:(?!(?P=quote)(?!\w))[^\n])*(?=(?P=quote))",
            rf"(?<![\w/.\\)\]}}*%])(?:{'|'.join(_BARE)})",
        ]
    )
)
_WHOLE = re.compile(_ROOT + ".*")


def redact_text(text: str) -> str:
    """A text without paths: a file's name is left, of a folder nothing. Addresses lose user and password."""
    return _IN_TEXT.sub(_shortened, text) if "/" in text or "\\" in text else text


def redact_config(value: Any) -> Any:
    """The same for the texts in dictionaries and lists, which may be paths as a whole, spaces and all."""
    if isinstance(value, dict):
        return {key: redact_config(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_config(item) for item in value]
    if isinstance(value, str):
        return _WHOLE.sub(_shortened, value) if _WHOLE.fullmatch(value) else redact_text(value)
    return value


def redact_csv(text: str) -> str:
    """The same for every field of a CSV."""
    out = io.StringIO()
    rows = csv.reader(io.StringIO(text))
    csv.writer(out, lineterminator="\n").writerows([redact_text(field) for field in row] for row in rows)
    return out.getvalue()


def _shortened(found: re.Match[str]) -> str:
    path = found.group()
    if "://" in path and not path.startswith("file:"):
        return re.sub(r"(?<=://)[^/?#]*@", "", path)
    # What follows the name: a line number, a bracket, the end of the sentence.
    path, after = re.fullmatch(r"(.*?)((?::\d+)?[\s).:\]}]*)", path, re.DOTALL).groups()  # type: ignore[union-attr]
    name = re.split(r"[/\\]", path)[-1]
    return (name if _FILE.fullmatch(name) else FOLDER) + after
