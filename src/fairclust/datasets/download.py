"""Fetch a source file from mirrors or from upstream, check it, unpack it.

Every place goes through the same steps: stream to a temporary file beside the target, compare the hash,
unpack the member, rename. A file that did not pass is removed.

pooch 1.9 is not used. It does not limit the size of a body or of a member, it repeats downloads that cannot
succeed (404, wrong hash), and only the user can read its files. A version of this module with pooch and guards
against these problems was longer.
"""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import time
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import requests
from tqdm import tqdm

from fairclust.datasets.errors import SourceCorrupt, SourceUnavailable
from fairclust.datasets.spec import SourceSpec, is_secure_url
from fairclust.outputs import content_digest, is_damaged, temporary_beside

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


class _Mismatch(_PlaceFailed):
    """A place delivered another file than the one that the catalogue describes."""


class _Transient(Exception):
    """A request failed for a reason that may pass, so it is repeated."""


class _SecureSession(requests.Session):
    """Session that sends nothing over plain http, whether asked directly or by a redirect."""

    def get_adapter(self, url: str) -> requests.adapters.BaseAdapter:
        if not is_secure_url(url):
            raise _PlaceFailed(f"refused to follow '{url}': only https is allowed")
        return super().get_adapter(url)


def local_paths(name: str, spec: SourceSpec, raw_dir: str | Path) -> tuple[Path, Path]:
    """The file that a source publishes, and the one to read, which is another if it is the member of an archive."""
    stored = Path(spec.path) if spec.path is not None else Path(raw_dir, spec.file or "")
    if spec.member is None:
        return stored, stored
    # The member's own path is untrusted, so it only becomes part of a flat file name.
    flat = re.sub(r"[^\w.-]", "_", spec.member)
    return stored, (Path(raw_dir) if spec.file is None else stored.parent) / f"{name}--{flat}"


def fetch_source(
    name: str, spec: SourceSpec, raw_dir: str | Path, mirrors: Sequence[str | Path] = ()
) -> Path:
    """Make the file of a source present and verified below `raw_dir`, and return its path.

    The `mirrors`, folders or base URLs, are tried before the addresses of the source. A file that is present already is
    used if its hash is right, or if the source states no hash. `REQUESTS_CA_BUNDLE` can name the certificates of a
    private authority. SourceUnavailable lists every place with its reason; a wrong hash is a SourceCorrupt.
    """
    stored, target = local_paths(name, spec, raw_dir)
    if spec.content_sha256 is not None:
        is_current = not is_damaged(target, spec.content_sha256)
    else:
        # The user may have replaced an archive since its member was unpacked.
        is_current = target.is_file() and (spec.path is None or spec.member is None)
    if is_current:
        return target
    tried, wanted, is_mismatch = "", spec.file or spec.path, False
    for place in _places(spec, stored, mirrors):
        try:
            _obtain(place, spec, stored, target)
        except _PlaceFailed as failure:
            log.warning("source '%s': %s: %s", name, place, failure)
            tried += f"\n  - '{place}': {str(failure)[:LONGEST_REASON]}"
            is_mismatch |= isinstance(failure, _Mismatch)
        else:
            return target
    if is_mismatch:
        raise SourceCorrupt(
            f"source '{name}': '{wanted}' was found, but it is not the file that the catalogue describes. "
            f"Tried:{tried}\nFix: delete or replace the wrong copy; if upstream has published a new version, "
            "check it and put its sha256 into the catalogue."
        )
    fix = "check the network, or put the file into a mirror folder and name that folder in the settings."
    if spec.path is not None:
        fix = "check the path, which is relative to the working folder, and the file."
    raise SourceUnavailable(f"source '{name}': '{wanted}' could not be fetched. Tried:{tried}\nFix: {fix}")


def _places(spec: SourceSpec, stored: Path, mirrors: Sequence[str | Path]) -> Iterator[str | Path]:
    if spec.file is None or stored.is_file():
        # The user's own file, an archive fetched earlier, or a file whose hash was just found wrong.
        yield stored
    if spec.file is not None:
        for mirror in mirrors:
            is_url = re.match(r"https?://", str(mirror))
            yield f"{str(mirror).rstrip('/')}/{spec.file}" if is_url else Path(mirror, spec.file)
        yield from spec.urls


def _obtain(place: str | Path, spec: SourceSpec, stored: Path, target: Path) -> None:
    """Put the verified file of one place at `target`, or raise `_PlaceFailed`."""
    if place == stored:
        if not stored.is_file():
            raise _PlaceFailed("no such file")
        _accept(stored, spec, target)
        return
    with _temporary(stored) as temp:
        for attempt in range(RETRIES + 1):
            if attempt:
                time.sleep(BACKOFF * 2 ** (attempt - 1))
            try:
                blocks = _local(place) if isinstance(place, Path) else _download(place, spec.max_bytes)
                _write(blocks, temp, spec.max_bytes)
                break
            except _Transient as error:
                reason = error
        else:
            raise _PlaceFailed(f"{reason} ({RETRIES + 1} tries)")
        if _accept(temp, spec, target):
            temp.replace(stored)


def _accept(file: Path, spec: SourceSpec, target: Path) -> bool:
    """Check the hashes of a file and put its member at `target`; return whether `file` is what the source publishes."""
    if spec.member is None:
        _compare(file, spec.file or file.name, spec.content_sha256)
        return True
    if spec.content_sha256 is None and spec.sha256 != "unknown":
        _compare(file, spec.file or file.name, spec.sha256)
    # A mirror may hold the unpacked member instead of the archive.
    alone = spec.content_sha256 is not None and content_digest(file) == spec.content_sha256
    with _temporary(target) as temp:
        unpack = _json_rows if Path(spec.file or spec.path or "").suffix == ".json" else _member
        _write(_local(file) if alone else unpack(file, spec.member, spec.max_bytes), temp, spec.max_bytes)
        _compare(temp, spec.member, spec.content_sha256)
        temp.replace(target)
    return not alone


def _compare(file: Path, what: str, expected: str | None) -> None:
    if expected is not None and (found := content_digest(file)) != expected:
        raise _Mismatch(f"sha256 of {what} is {found}, expected {expected}")


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    target.parent.mkdir(parents=True, exist_ok=True)
    temp = temporary_beside(target, "part")
    try:
        yield temp
    finally:
        temp.unlink(missing_ok=True)


def _write(blocks: Iterable[bytes], temp: Path, max_bytes: int) -> None:
    size = 0
    with temp.open("wb") as out:
        for block in blocks:
            size += len(block)
            if size > max_bytes:
                raise _PlaceFailed(f"larger than max_bytes = {max_bytes:,}")
            out.write(block)


# The functions for the three kinds of places turn every error of the place into `_PlaceFailed` or `_Transient`. All
# other errors, such as a full disk, come from this machine and are raised unchanged.


def _local(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            yield from iter(partial(stream.read, CHUNK), b"")
    except OSError as error:
        raise _PlaceFailed(error.strerror or str(error)) from error


def _member(archive: Path, member: str, max_bytes: int) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(archive) as opened:
            if member not in opened.namelist():
                listed = ", ".join(opened.namelist()[:10])
                raise _PlaceFailed(f"the archive has no member '{member}'; it has: {listed}")
            if (size := opened.getinfo(member).file_size) > max_bytes:
                # Checked before anything is unpacked, because bzip2 and LZMA do not limit their use of memory.
                raise _PlaceFailed(f"larger than max_bytes = {max_bytes:,}: {size:,} bytes")
            with opened.open(member) as stream:
                yield from iter(partial(stream.read, CHUNK), b"")
    except _PlaceFailed:
        raise
    except Exception as error:
        # Every compression has different exceptions: zlib.error, LZMAError, OSError, NotImplementedError, ...
        raise _PlaceFailed(f"the archive cannot be unpacked: {str(error) or type(error).__name__}") from error


def _json_rows(file: Path, member: str, max_bytes: int) -> Iterator[bytes]:
    """The rows that a JSON object has as a list or as an object under the key `member`, as lines of a CSV file."""
    if file.stat().st_size > max_bytes:
        raise _PlaceFailed(f"larger than max_bytes = {max_bytes:,}")
    try:
        found = json.loads(file.read_bytes())[member]
        for row in found.values() if isinstance(found, dict) else found:
            if not isinstance(row, list) or any(isinstance(cell, list | dict) for cell in row):
                raise TypeError(f"{str(row)[:50]} is no list of numbers and texts")
            line = io.StringIO()
            csv.writer(line, lineterminator="\n").writerow(row)
            yield line.getvalue().encode()
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise _PlaceFailed(f"the JSON file has no rows under '{member}': {error!r}") from error


def _download(url: str, max_bytes: int) -> Iterator[bytes]:
    headers = {"Accept-Encoding": "identity"}
    try:
        with (
            _SecureSession() as session,
            session.get(url, stream=True, timeout=TIMEOUT, headers=headers) as response,
        ):
            if response.status_code != requests.codes.ok:
                reason = f"HTTP status {response.status_code}"
                raise (_Transient if response.status_code in TRANSIENT_STATUS else _PlaceFailed)(reason)
            stated = response.headers.get("Content-Length")
            if stated is not None and not re.fullmatch(r"[0-9]{1,18}", stated):
                raise _PlaceFailed(f"the server states the length {stated!r}, which is not a number of bytes")
            size = int(stated or 0)
            if size > max_bytes:
                raise _PlaceFailed(f"larger than max_bytes = {max_bytes:,}: {size:,} bytes")
            # With `disable=None`, there is no bar unless standard error is a terminal.
            what = urlsplit(url).path.rpartition("/")[2]
            with tqdm(total=size or None, unit="B", unit_scale=True, desc=what, disable=None) as bar:
                for block in response.iter_content(CHUNK):
                    bar.update(len(block))
                    yield block
            # urllib3 before version 2 does not notice that a body ends early.
            if size and response.raw.tell() != size:
                raise _Transient(f"body ended after {response.raw.tell():,} of {size:,} bytes")
    except (_PlaceFailed, _Transient):
        raise
    except requests.exceptions.SSLError as error:
        # This is a subclass of ConnectionError, but repeating the request does not help with a wrong certificate.
        raise _PlaceFailed(f"certificate or TLS error: {error}") from error
    except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
        raise _Transient(f"{type(error).__name__}: {error}") from error
    except Exception as error:
        # Redirects to malformed hosts raise ValueError, UnicodeError or an exception of urllib3.
        raise _PlaceFailed(f"{type(error).__name__}: {error}") from error
