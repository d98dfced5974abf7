"""Fetch a source file from mirrors or from upstream, check it, unpack it.

A mirror and upstream go through the same steps: stream to a temporary file beside the target,
compare the hash, unpack the member, rename. What is not finished is not left behind.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
import time
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import requests
from tqdm import tqdm

from fairclust.datasets.errors import SourceCorrupt, SourceUnavailable
from fairclust.datasets.spec import SourceSpec, is_secure_url

CHUNK = 1 << 18
TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
Progress = bool | Literal["log"]

log = logging.getLogger(__name__)


class _PlaceFailed(Exception):
    """One place did not deliver; the next one is tried."""


class _Mismatch(_PlaceFailed):
    """A place delivered something else than the catalogue describes."""

    def __init__(self, what: str, expected: str, found: str):
        super().__init__(f"sha256 of {what} is {found}, expected {expected}")


class _Transient(Exception):
    """The same request may work in a moment."""


class _SecureSession(requests.Session):
    """Session that sends nothing over plain http, whether asked directly or by a redirect."""

    def get_adapter(self, url: str) -> requests.adapters.BaseAdapter:
        if not is_secure_url(url):
            raise _PlaceFailed(f"refused to follow '{url}': only https is allowed")
        return super().get_adapter(url)


@dataclass(frozen=True)
class _Transfer:
    """How a file may be fetched."""

    name: str
    max_bytes: int
    retries: int
    timeout: float
    backoff: float
    progress: Progress


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def local_path(name: str, spec: SourceSpec, raw_dir: str | Path) -> Path:
    """Return the path that :func:`fetch_source` returns, without fetching.

    Parameters
    ----------
    name : str
        Name of the source.
    spec : SourceSpec
        Its specification.
    raw_dir : path
        Folder of raw data.

    Returns
    -------
    Path
        The file that is read: the member of an archive if the source has one.
    """
    if spec.member is None:
        return Path(spec.path) if spec.path is not None else Path(raw_dir, spec.file or "")
    # The member's own path is untrusted, so it only becomes part of a flat file name.
    flat = re.sub(r"[^\w.-]", "_", spec.member)
    folder = Path(raw_dir, spec.file).parent if spec.file is not None else Path(raw_dir)
    return folder / f"{name}--{flat}"


def fetch_source(
    name: str,
    spec: SourceSpec,
    raw_dir: str | Path,
    mirrors: Sequence[str | Path] = (),
    *,
    retries: int = 3,
    timeout: float = 30.0,
    backoff: float = 1.0,
    progress: Progress = True,
) -> Path:
    """Make the file of a source present and verified, and return its path.

    Parameters
    ----------
    name : str
        Name of the source, for messages.
    spec : SourceSpec
        Its specification.
    raw_dir : path
        Folder of raw data; the file lands at ``raw_dir / spec.file``.
    mirrors : sequence of folder or base URL
        Tried in order before ``spec.urls``; the file lies at ``mirror / spec.file``.
    retries : int
        Further tries for each URL after a server error, a timeout, a broken connection or a body
        that ends early.
    timeout : float
        Seconds to wait for a connection and for each piece of the body.
    backoff : float
        Seconds before the first retry; doubled each time.
    progress : bool or 'log'
        A bar on standard error if that is a terminal, or ('log') one line per transfer.

    Returns
    -------
    Path
        The file to read: the member of an archive if the source has one.

    Raises
    ------
    SourceUnavailable
        No place had the file; the message lists every place with its reason.
    SourceCorrupt
        A file was found, none with the right hash.

    Notes
    -----
    A file already present is used again if its hash is right, or if the catalogue knows none.
    An own certificate authority is given by the environment variable ``REQUESTS_CA_BUNDLE``.
    """
    transfer = _Transfer(name, spec.max_bytes, retries, timeout, backoff, progress)
    target = local_path(name, spec, raw_dir)
    if _present(target, spec):
        return target
    failures: list[tuple[str, _PlaceFailed]] = []
    for place in _places(spec, Path(raw_dir), mirrors):
        try:
            _obtain(place, spec, Path(raw_dir), target, transfer)
        except _PlaceFailed as failure:
            log.warning("source '%s': %s: %s", name, place, failure)
            failures.append((str(place), failure))
        else:
            return target
    raise _no_place_left(name, spec, failures)


def _present(target: Path, spec: SourceSpec) -> bool:
    if not target.is_file():
        return False
    return spec.content_sha256 is None or sha256_of(target) == spec.content_sha256


def _places(spec: SourceSpec, raw_dir: Path, mirrors: Sequence[str | Path]) -> Iterator[str | Path]:
    if spec.file is None:
        yield Path(spec.path or "")
        return
    present = raw_dir / spec.file
    if present.is_file():
        # An archive fetched earlier, or a file whose hash has just been found wrong.
        yield present
    for mirror in mirrors:
        if isinstance(mirror, str) and re.match(r"https?://", mirror):
            yield f"{mirror.rstrip('/')}/{spec.file}"
        else:
            yield Path(mirror, spec.file)
    yield from spec.urls


def _obtain(place: str | Path, spec: SourceSpec, raw_dir: Path, target: Path, transfer: _Transfer) -> None:
    """Put the verified file of one place at `target`, or raise `_PlaceFailed`."""
    if spec.file is None:
        own = Path(spec.path or "")
        if not own.is_file():
            raise _PlaceFailed("no such file")
        if spec.member is None:
            _compare(own.name, spec.content_sha256, sha256_of(own))
        else:
            _unpack(own, sha256_of(own), spec, target)
        return
    stored = raw_dir / spec.file
    stored.parent.mkdir(parents=True, exist_ok=True)
    with _temporary(stored) as temp:
        if isinstance(place, Path):
            found = _copy(place, temp, spec.max_bytes)
        else:
            found = _download(place, temp, transfer)
        if spec.member is None:
            _compare(spec.file, spec.content_sha256, found)
        else:
            _unpack(temp, found, spec, target)
        temp.replace(stored)


def _unpack(archive: Path, archive_sha256: str, spec: SourceSpec, target: Path) -> None:
    member = spec.member or ""
    if spec.content_sha256 is None and spec.sha256 not in (None, "unknown"):
        _compare(archive.name, spec.sha256, archive_sha256)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _temporary(target) as temp:
        try:
            with zipfile.ZipFile(archive) as opened:
                if member not in opened.namelist():
                    listed = ", ".join(opened.namelist()[:10])
                    raise _PlaceFailed(f"the archive has no member '{member}'; it has: {listed}")
                with opened.open(member) as stream:
                    found = _write(_blocks(stream), temp, spec.max_bytes)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise _PlaceFailed(f"the archive cannot be unpacked: {error}") from error
        _compare(member, spec.content_sha256, found)
        temp.replace(target)


def _compare(what: str, expected: str | None, found: str) -> None:
    if expected is not None and found != expected:
        raise _Mismatch(what, expected, found)


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    temp = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        yield temp
    finally:
        temp.unlink(missing_ok=True)


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(CHUNK):
        yield block


def _write(blocks: Iterable[bytes], temp: Path, max_bytes: int) -> str:
    digest, size = hashlib.sha256(), 0
    with temp.open("wb") as out:
        for block in blocks:
            size += len(block)
            if size > max_bytes:
                raise _PlaceFailed(f"larger than max_bytes = {max_bytes:,}")
            digest.update(block)
            out.write(block)
    return digest.hexdigest()


def _copy(path: Path, temp: Path, max_bytes: int) -> str:
    try:
        stream = path.open("rb")
    except OSError as error:
        raise _PlaceFailed(error.strerror or str(error)) from error
    with stream:
        return _write(_blocks(stream), temp, max_bytes)


def _download(url: str, temp: Path, transfer: _Transfer) -> str:
    for attempt in range(transfer.retries + 1):
        if attempt:
            time.sleep(transfer.backoff * 2 ** (attempt - 1))
        try:
            return _stream(url, temp, transfer)
        except _Transient as error:
            reason = error
    raise _PlaceFailed(f"{reason} ({transfer.retries + 1} tries)")


def _stream(url: str, temp: Path, transfer: _Transfer) -> str:
    headers = {"Accept-Encoding": "identity"}
    try:
        with (
            _SecureSession() as session,
            session.get(url, stream=True, timeout=transfer.timeout, headers=headers) as response,
        ):
            if response.status_code != requests.codes.ok:
                reason = f"HTTP status {response.status_code}"
                raise (_Transient if response.status_code in TRANSIENT_STATUS else _PlaceFailed)(reason)
            stated = response.headers.get("Content-Length", "")
            size = int(stated) if stated.isdigit() else None
            if size is not None and size > transfer.max_bytes:
                raise _PlaceFailed(f"larger than max_bytes = {transfer.max_bytes:,}: {size:,} bytes")
            return _write(_watched(response, url, size, transfer), temp, transfer.max_bytes)
    except requests.exceptions.SSLError as error:
        # A subclass of ConnectionError, but a wrong certificate stays wrong.
        raise _PlaceFailed(f"certificate or TLS error: {error}") from error
    except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
        raise _Transient(f"{type(error).__name__}: {error}") from error
    except requests.RequestException as error:
        raise _PlaceFailed(f"{type(error).__name__}: {error}") from error


def _watched(response: requests.Response, url: str, size: int | None, transfer: _Transfer) -> Iterator[bytes]:
    """Yield the body with a bar or a log line, and notice when it ends early."""
    received, start = 0, time.monotonic()
    hidden = None if transfer.progress is True else True
    with tqdm(total=size, unit="B", unit_scale=True, desc=transfer.name, disable=hidden) as bar:
        for block in response.iter_content(CHUNK):
            received += len(block)
            bar.update(len(block))
            yield block
    # urllib3 2 checks this itself, urllib3 1.26 does not; an encoded body has another length.
    if size is not None and received != size and "Content-Encoding" not in response.headers:
        raise _Transient(f"body ended after {received:,} of {size:,} bytes")
    if transfer.progress == "log":
        seconds = time.monotonic() - start
        line = f"{transfer.name}: {received:,} bytes in {seconds:.1f} s from {url}"
        print(line, file=sys.stderr, flush=True)


def _no_place_left(
    name: str, spec: SourceSpec, failures: list[tuple[str, _PlaceFailed]]
) -> SourceCorrupt | SourceUnavailable:
    tried = "".join(f"\n  - '{place}': {failure}" for place, failure in failures)
    wanted = spec.file or spec.path
    if any(isinstance(failure, _Mismatch) for _, failure in failures):
        return SourceCorrupt(
            f"source '{name}': '{wanted}' was found, but it is not the file that the catalogue describes. "
            f"Tried:{tried}\nFix: delete or replace the wrong copy; if upstream has published a new version, "
            "check it and put its sha256 into the catalogue."
        )
    fix = "check the network, or put the file into a mirror folder and name that folder in the settings."
    if spec.path is not None:
        fix = "check the path, which is relative to the working folder, and the file."
    return SourceUnavailable(f"source '{name}': '{wanted}' is not to be had. Tried:{tried}\nFix: {fix}")
