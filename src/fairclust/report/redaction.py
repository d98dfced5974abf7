"""Removal of a machine's paths, which reveal the names of its users, from everything that is published."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

FOLDER = "(folder)"

# A path's last name is kept if it has one of these endings, because then it is the name of a file. Otherwise it can be
# the name of a user, as in /home/anna.smith.
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
# In Windows paths, a folder's name may contain spaces, because a backslash ends it. The last name ends at a space.
_BACKSLASHED = rf"(?:\\+{_WINDOWS_NAME}(?: +{_WINDOWS_NAME})*(?=\\))*\\+{_WINDOWS_NAME}\\*"
# In running text, only two or more names make a path: 'rows /s' and 'K:\n' contain no path.
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
            # A quote before a letter is an apostrophe, which belongs to the name.
            rf"(?<=(?P<quote>['\"])){_ROOT}(?:(?!(?P=quote)(?!\w))[^\n])*(?=(?P=quote))",
            rf"(?<![\w/.\\)\]}}*%])(?:{'|'.join(_BARE)})",
        ]
    )
)
_WHOLE = re.compile(_ROOT + ".*")


def redact_text(text: str) -> str:
    """Remove paths from a text.

    The path of a file is shortened to the file's name, and the path of a folder becomes '(folder)'. Addresses such as
    https://user:password@host lose the user and the password.
    """
    return _IN_TEXT.sub(_shortened, text) if "/" in text or "\\" in text else text


def redact_config(value: Any) -> Any:
    """Apply `redact_text` to all texts in dictionaries and lists. A text can also be one path that contains spaces."""
    if isinstance(value, dict):
        return {key: redact_config(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_config(item) for item in value]
    if isinstance(value, str):
        return _WHOLE.sub(_shortened, value) if _WHOLE.fullmatch(value) else redact_text(value)
    return value


def redact_csv(text: str) -> str:
    """Apply `redact_text` to every field of a CSV."""
    out = io.StringIO()
    rows = csv.reader(io.StringIO(text))
    csv.writer(out, lineterminator="\n").writerows([redact_text(field) for field in row] for row in rows)
    return out.getvalue()


def redacted(path: Path) -> str:
    """The text of a file without paths."""
    text = path.read_text(encoding="utf-8")
    return redact_csv(text) if path.suffix == ".csv" else redact_text(text)


def _shortened(found: re.Match[str]) -> str:
    path = found.group()
    if "://" in path and not path.startswith("file:"):
        return re.sub(r"(?<=://)[^/?#]*@", "", path)
    # A line number, a bracket or the end of the sentence may follow the name.
    path, after = re.fullmatch(r"(.*?)((?::\d+)?[\s).:\]}]*)", path, re.DOTALL).groups()  # type: ignore[union-attr]
    name = re.split(r"[/\\]", path)[-1]
    return (name if _FILE.fullmatch(name) else FOLDER) + after
