"""Fetch a source file from mirrors or from upstream, check it, unpack it.

pooch downloads. This module adds what pooch 1.9 lacks: several places, https only, a limit of the size, and no further
try after an error that stays, such as a wrong hash. pooch's own cache is not used, because its files can be read by one
user only.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import logging
import re
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pooch
import requests

from fairclust.datasets.errors import SourceUnavailable
from fairclust.datasets.spec import SourceSpec, is_secure_url
from fairclust.outputs import content_digest, temporary_beside

CHUNK = 1 << 18
# Further tries for each URL after a server error, a timeout, a broken connection or a body that ends early. Servers of
# data sets recover within seconds, or are down for hours.
RETRIES = 3
# Seconds before the first retry, doubled each time, and seconds to wait for a connection and each piece of the body.
BACKOFF, TIMEOUT = 1.0, 30.0
TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
LONGEST_REASON = 500

log = logging.getLogger(__name__)


class _PlaceFailed(Exception):
    """One place did not deliver; the next one is tried."""


class _Transient(_PlaceFailed):
    """A request failed for a reason that may pass, so it is repeated."""


class _Limited(io.BufferedWriter):
    """A new file that cannot become larger than `max_bytes`."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        super().__init__(io.FileIO(path, "w"))
        self.max_bytes = max_bytes

    def write(self, block: Any) -> int:
        self.check(self.tell() + len(block))
        return super().write(block)

    def check(self, size: int) -> None:
        """Raise `_PlaceFailed` if the file would be too large with this size."""
        if size > self.max_bytes:
            raise _PlaceFailed(f"larger than max_bytes = {self.max_bytes:,}: {size:,} bytes or more")


def local_paths(name: str, spec: SourceSpec, raw_dir: str | Path) -> tuple[Path, Path]:
    """The file that a source publishes, and the one to read, which is another if it is the member of an archive."""
    stored = Path(raw_dir, str(spec.file))
    if spec.member is None:
        return stored, stored
    # The member's own path is untrusted, so it only becomes part of a flat file name.
    flat = re.sub(r"[^\w.-]", "_", spec.member)
    return stored, stored.parent / f"{name}--{flat}"


def fetch_source(
    name: str, spec: SourceSpec, raw_dir: str | Path, mirrors: Sequence[str | Path] = ()
) -> Path:
    """Make the `file` of a source present and verified below `raw_dir`, and return its path.

    The `mirrors`, folders or base URLs, are tried before the addresses of the source. A file that is present already is
    used if its hash is right, or if the source states no hash. `REQUESTS_CA_BUNDLE` can name the certificates of a
    private authority. SourceUnavailable lists every place with its reason.
    """
    stored, target = local_paths(name, spec, raw_dir)
    expected = spec.content_sha256
    if target.is_file() and (expected is None or content_digest(target) == expected):
        return target
    tried = ""
    for place in _places(spec, stored, mirrors):
        try:
            _obtain(place, spec, stored, target)
        except _PlaceFailed as failure:
            log.warning("source '%s': %s: %s", name, place, failure)
            tried += f"\n  - '{place}': {str(failure)[:LONGEST_REASON]}"
        else:
            return target
    fix = (
        "check the network, or put the file into a mirror folder and name that folder in the settings. If the sha256 "
        "differs because upstream has published a new version, check it and put its sha256 into the catalogue."
    )
    raise SourceUnavailable(f"source '{name}': '{spec.file}' could not be fetched. Tried:{tried}\nFix: {fix}")


def _places(spec: SourceSpec, stored: Path, mirrors: Sequence[str | Path]) -> Iterator[str | Path]:
    if stored.is_file():
        # An archive of an earlier download, or a file whose hash was just found wrong.
        yield stored
    for mirror in mirrors:
        is_url = re.match(r"https?://", str(mirror))
        yield f"{str(mirror).rstrip('/')}/{spec.file}" if is_url else Path(mirror, str(spec.file))
    yield from spec.urls


def _obtain(place: str | Path, spec: SourceSpec, stored: Path, target: Path) -> None:
    """Put the verified file of one place at `target`, or raise `_PlaceFailed`."""
    if place == stored:
        _accept(stored, spec, target)
        return
    with _temporary(stored) as temp:
        for attempt in range(RETRIES + 1):
            try:
                with _Limited(temp, spec.max_bytes) as out:
                    _copy(place, out) if isinstance(place, Path) else _download(place, out)
                break
            except _Transient as error:
                if attempt == RETRIES:
                    raise _PlaceFailed(f"{error} ({RETRIES + 1} tries)") from error
            time.sleep(BACKOFF * 2**attempt)
        _accept(temp, spec, target)
        temp.replace(stored)


def _accept(file: Path, spec: SourceSpec, target: Path) -> None:
    """Check the hashes of a file, and put its member at `target`."""
    if spec.member is None:
        _compare(file, str(spec.file), spec.content_sha256)
        return
    if spec.content_sha256 is None and spec.sha256 != "unknown":
        _compare(file, str(spec.file), spec.sha256)
    with _temporary(target) as temp:
        with _Limited(temp, spec.max_bytes) as out:
            if str(spec.file).endswith(".json"):
                _write_rows(file, spec.member, out)
            else:
                _unpack(file, spec.member, out)
        _compare(temp, spec.member, spec.content_sha256)
        temp.replace(target)


def _compare(file: Path, what: str, expected: str | None) -> None:
    if expected is not None and (found := content_digest(file)) != expected:
        raise _PlaceFailed(f"sha256 of {what} is {found}, expected {expected}")


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    target.parent.mkdir(parents=True, exist_ok=True)
    temp = temporary_beside(target)
    try:
        yield temp
    finally:
        temp.unlink(missing_ok=True)


@contextmanager
def _failures_of_the_place(what: str = "") -> Iterator[None]:
    """Turn errors into `_PlaceFailed`, except for those of this machine's disk, which no other place would avoid.

    Malformed hosts and damaged archives raise errors of many kinds, and every compression has its own.
    """
    try:
        yield
    except _PlaceFailed:
        raise
    except Exception as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        raise _PlaceFailed(what + reason) from error


def _copy(path: Path, out: _Limited) -> None:
    with _failures_of_the_place(), path.open("rb") as stream:
        shutil.copyfileobj(stream, out, CHUNK)


def _unpack(archive: Path, member: str, out: _Limited) -> None:
    with _failures_of_the_place("the archive cannot be unpacked: "), zipfile.ZipFile(archive) as opened:
        if member not in opened.namelist():
            listed = ", ".join(opened.namelist()[:10])
            raise _PlaceFailed(f"the archive has no member '{member}'; it has: {listed}")
        # Checked before anything is unpacked, because bzip2 and LZMA do not limit their use of memory.
        out.check(opened.getinfo(member).file_size)
        with opened.open(member) as stream:
            shutil.copyfileobj(stream, out, CHUNK)


def _write_rows(file: Path, member: str, out: _Limited) -> None:
    """Write the rows that a JSON object has as a list or an object under the key `member`, as lines of a CSV file."""
    out.check(file.stat().st_size)
    with _failures_of_the_place(f"the JSON file has no rows under '{member}': "):
        found = json.loads(file.read_bytes())[member]
        for row in found.values() if isinstance(found, dict) else found:
            if not isinstance(row, list) or any(isinstance(cell, list | dict) for cell in row):
                raise TypeError(f"{str(row)[:50]} is no list of numbers and texts")
            line = io.StringIO()
            csv.writer(line, lineterminator="\n").writerow(row)
            out.write(line.getvalue().encode())


def _download(url: str, out: _Limited) -> None:
    def check(response: requests.Response, **_: Any) -> None:
        """Refuse what must not be followed or read; this runs before a redirect is followed or a body is read."""
        if response.is_redirect:
            _check_address(urljoin(response.url, response.headers["Location"]))
            return
        _check_address(response.url)
        if response.status_code != requests.codes.ok:
            is_transient = response.status_code in TRANSIENT_STATUS
            raise (_Transient if is_transient else _PlaceFailed)(f"HTTP status {response.status_code}")
        out.check(int(response.headers.get("Content-Length", "0")))

    _check_address(url)
    download = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(),
        chunk_size=CHUNK,
        timeout=TIMEOUT,
        headers={"Accept-Encoding": "identity"},
        hooks={"response": check},
    )
    with _failures_of_the_place():
        try:
            download(url, out, None)
        except (
            requests.ConnectionError,
            requests.Timeout,
            requests.exceptions.ChunkedEncodingError,
        ) as error:
            # An error of TLS is a ConnectionError, but repeating the request does not help with a wrong certificate.
            if isinstance(error, requests.exceptions.SSLError):
                raise _PlaceFailed(f"certificate or TLS error: {error}") from error
            raise _Transient(f"{type(error).__name__}: {error}") from error


def _check_address(url: str) -> None:
    if not is_secure_url(url):
        raise _PlaceFailed(f"refused to follow '{url}': only https is allowed")
