"""Downloads against a local server: every promise of fetch_source."""

import stat
import struct
import time
from pathlib import Path
from unittest import mock

import pytest
from local_server import body, endless, in_turn, sha, status, zipped

import fairclust.datasets.download as download
from fairclust.datasets import SourceUnavailable
from fairclust.datasets.download import fetch_source, local_paths
from fairclust.datasets.spec import SourceSpec

GOOD = b"age,sex\n31,f\n45,m\n" * 50
FILE = "demo/table.csv"


def spec(server=None, *paths, **changes):
    urls = [server.url(path) for path in paths] if server else ["https://127.0.0.1:1/closed"]
    fields = {"file": FILE, "urls": urls, "sha256": sha(GOOD), "licence": "CC0", **changes}
    return SourceSpec.model_validate(fields)


def archive_spec(server, content=GOOD, **changes):
    own = {"file": "demo/a.zip", "sha256": None, "member": "in/t.csv", "member_sha256": sha(content)}
    return spec(server, "/a.zip", **own | changes)


def fetch(source, raw, *mirrors, **options):
    constants = {name.upper(): value for name, value in {"backoff": 0.0, **options}.items()}
    with mock.patch.multiple(download, **constants):
        return fetch_source("demo", source, raw, mirrors)


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def redirect(url):
    return status(302, Location=url)


@pytest.fixture
def raw(tmp_path):
    return tmp_path / "raw"


def test_a_download_is_used_until_it_is_damaged(server, raw):
    server.routes["/t"] = body(GOOD)
    for damage, hits in ((None, 1), (None, 1), (b"damaged", 2)):
        if damage:
            (raw / FILE).write_bytes(damage)
        path = fetch(spec(server, "/t"), raw)
        assert (path, path) == (raw / FILE, raw / FILE) == local_paths("demo", spec(server, "/t"), raw)
        assert path.read_bytes() == GOOD
        assert files(raw) == [FILE] and server.hits == hits * ["/t"]


def test_mirrors_come_first_folders_or_addresses(server, raw, tmp_path):
    mirror = tmp_path / "mirror"
    (mirror / FILE).parent.mkdir(parents=True)
    (mirror / FILE).write_bytes(GOOD)
    assert fetch(spec(server, "/t"), raw, tmp_path / "nowhere", mirror).read_bytes() == GOOD
    assert server.hits == [] and (mirror / FILE).exists()
    server.routes["/base/" + FILE] = body(GOOD)
    assert fetch(spec(server, "/t"), raw / "other", server.url("/base/")).read_bytes() == GOOD
    assert server.hits == ["/base/" + FILE]
    with pytest.raises(SourceUnavailable, match="refused to follow 'http://example"):
        fetch(spec(), raw / "third", "http://example.org/mirror", retries=0)


def test_a_corrupt_mirror_is_skipped(server, raw, tmp_path):
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_bytes(b"old")
    with pytest.raises(SourceUnavailable, match=sha(b"old")):
        fetch(spec(), raw, tmp_path, retries=0)
    server.routes["/t"] = body(GOOD)
    assert fetch(spec(server, "/t"), raw, tmp_path).read_bytes() == GOOD


@pytest.mark.parametrize(
    "answer",
    [
        *(status(code) for code in (500, 503, 429)),
        body(GOOD[:100], stated=len(GOOD)),
        lambda handler: time.sleep(1.0),
    ],
    ids=["500", "503", "429", "short", "timeout"],
)
def test_failures_that_may_pass_are_tried_again(server, raw, answer):
    server.routes["/t"] = in_turn(answer, answer, body(GOOD))
    assert fetch(spec(server, "/t"), raw, timeout=0.3).read_bytes() == GOOD
    assert len(server.hits) == 3


def test_back_off_doubles(server, raw, monkeypatch):
    waits = []
    monkeypatch.setattr("fairclust.datasets.download.time.sleep", waits.append)
    server.routes["/t"] = status(500)
    with pytest.raises(SourceUnavailable, match="HTTP status 500"):
        fetch(spec(server, "/t"), raw, backoff=0.5)
    assert waits == [0.5, 1.0, 2.0]


def test_unavailable_lists_every_place(server, raw, tmp_path):
    server.routes["/b"] = status(403)
    with pytest.raises(SourceUnavailable) as caught:
        fetch(spec(server, "/a", "/b"), raw, tmp_path / "mirror")
    message = str(caught.value)
    for part in (
        f"source 'demo': '{FILE}' could not be fetched",
        f"'{tmp_path / 'mirror' / FILE}': No such file",
        f"'{server.url('/a')}': HTTP status 404",
        f"'{server.url('/b')}': HTTP status 403",
        "Fix: check the network, or put the file into a mirror folder",
    ):
        assert part in message


MALFORMED = (
    "https://[::1/t",
    "https://" + "a" * 60_000 + ".org/t",
    "https://x.org:99999/t",
    "https://",
)
FAILURES = {
    "missing": (status(404), "HTTP status 404"),
    "another file": (body(b"another"), f"sha256 of {FILE} is {sha(b'another')}, expected {sha(GOOD)}"),
    "endless": (endless, "larger than max_bytes = 1,000,000"),
    "long": (body(b"", stated=10**12), "1,000,000,000,000 bytes"),
    "http": (redirect("http://example.org/t"), "refused to follow 'http://example.org/t': only https"),
    "no loopback": (redirect("http://127.0.0.1.example.org/t"), "refused to follow .*: only https"),
    "ftp": (redirect("ftp://x.org/t"), "refused to follow 'ftp://x.org/t': only https"),
    "loop": (redirect("/t"), "TooManyRedirects"),
    **{f"to {url[:24]}": (redirect(url), r"Tried:\n  - 'https.*/t': .+") for url in MALFORMED},
    **{
        f"length {text[:9]}": (body(GOOD, stated=text), "ValueError: |multiple unmatching values")
        for text in ("\u00b2", "1e3", "9" * 5000, "7, 8", "0x10")
    },
}


@pytest.mark.parametrize("failure", FAILURES)
def test_failures_that_do_not_pass_are_not_tried_again(server, raw, failure):
    server.routes["/t"], message = FAILURES[failure]
    with pytest.raises(SourceUnavailable, match=message) as caught:
        fetch(spec(server, "/t", max_bytes=1_000_000), raw)
    assert len(str(caught.value)) < 1000
    # Python reads a redirect to no host as one to the same place.
    # A second try would follow all 30 redirects again. One request of many may be sent twice on a busy machine.
    assert len(server.hits) in (range(31, 62) if failure in ("loop", "to https://") else [1])
    assert files(raw) == []


@pytest.mark.parametrize("to", ["https", "http on loopback"])
def test_secure_redirects_are_followed(server, plain_server, raw, to):
    other = server if to == "https" else plain_server
    server.routes["/t"] = redirect(other.url("/u"))
    other.routes["/u"] = body(GOOD)
    assert fetch(spec(server, "/t"), raw).read_bytes() == GOOD


def test_unknown_certificate_is_refused(server, raw, monkeypatch):
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    server.routes["/t"] = body(GOOD)
    with pytest.raises(SourceUnavailable, match="certificate or TLS error"):
        fetch(spec(server, "/t"), raw)
    assert server.hits == []


def test_member_of_an_archive(server, raw):
    server.routes["/a.zip"] = body(zipped({"in/t.csv": GOOD, "in/other": b"no"}))
    path = fetch(archive_spec(server), raw)
    assert path.read_bytes() == GOOD
    assert files(raw) == ["demo/a.zip", "demo/demo--in_t.csv"]
    path.unlink()
    assert fetch(archive_spec(server), raw).read_bytes() == GOOD
    assert len(server.hits) == 1  # the archive was still there
    # The same member in an archive that was packed anew is good enough.
    assert fetch(archive_spec(server, sha256="0" * 64), raw / "anew").read_bytes() == GOOD


def test_rows_of_a_json_file(server, raw):
    content = b'1,0.5\n2,1e-07\n"a,b",\n'
    rows = b'{"a": [1, 0.5], "b": [2, 1e-07], "c": ["a,b", null]}'
    server.routes["/a.zip"] = body(
        b'{"size": 2, "letters": "ab", "objects": [{"a": 1}], "vectors": %s}' % rows
    )
    source = archive_spec(server, content, file="demo/a.json", member="vectors")
    assert fetch(source, raw).read_bytes() == content
    for member in ("size", "words", "letters", "objects"):
        lost = archive_spec(server, content, file="demo/a.json", member=member)
        with pytest.raises(SourceUnavailable, match=f"the JSON file has no rows under '{member}'"):
            fetch(lost, raw)


@pytest.mark.parametrize("member", ["../../evil.csv", "/evil.csv", "..\\evil.csv"])
def test_member_path_never_leaves_the_folder(server, raw, tmp_path, member):
    server.routes["/a.zip"] = body(zipped({member: GOOD, "../bystander": b"x"}))
    before = set(files(tmp_path))
    path = fetch(archive_spec(server, member=member), raw)
    assert path.parent == raw / "demo"
    assert path.read_bytes() == GOOD
    assert set(files(tmp_path)) - before == {"raw/demo/a.zip", str(path.relative_to(tmp_path))}


BOMB = zipped({"in/t.csv": bytes(20_000_000)})
LIAR = BOMB.replace(struct.pack("<I", 20_000_000), struct.pack("<I", 10))
DAMAGED = bytearray(zipped({"in/t.csv": GOOD}))
DAMAGED[40] ^= 0xFF


# The cases have explicit ids, because the bytes of an archive contain its time, which differs between xdist processes.
@pytest.mark.parametrize(
    ("content", "changes", "message"),
    [
        (b"no zip at all", {}, "cannot be unpacked"),
        (zipped({"in/t.csv": GOOD})[:60], {}, "cannot be unpacked"),
        (bytes(DAMAGED), {}, "cannot be unpacked"),
        (BOMB, {"max_bytes": 100_000}, "larger than max_bytes = 100,000"),
        (LIAR, {"max_bytes": 100_000}, "cannot be unpacked: BadZipFile: Bad CRC-32"),
        (zipped({"other.csv": GOOD}), {}, "no member 'in/t.csv'; it has: other.csv"),
        (
            zipped({"in/t.csv": b"other"}),
            {},
            f"sha256 of in/t.csv is {sha(b'other')}, expected {sha(GOOD)}",
        ),
        (
            zipped({"in/t.csv": GOOD}),
            {"sha256": "0" * 64, "member_sha256": "unknown"},
            "sha256 of",
        ),
    ],
    ids=["text", "torn", "damaged", "bomb", "liar", "no member", "other member", "hash of the archive"],
)
def test_an_archive_that_cannot_be_used_leaves_nothing(server, raw, content, changes, message):
    assert len(content) < 100_000
    server.routes["/a.zip"] = body(content)
    with pytest.raises(SourceUnavailable, match=message):
        fetch(archive_spec(server, **changes), raw)
    assert files(raw) == []


def test_other_users_may_read_the_file(server, raw):
    server.routes["/t"] = body(GOOD)
    (raw.parent / "file").touch()
    mode = stat.S_IMODE((raw.parent / "file").stat().st_mode)
    assert stat.S_IMODE(fetch(spec(server, "/t"), raw).stat().st_mode) == mode


@pytest.mark.parametrize("of, name", [(Path, "replace"), (download._Limited, "write")])
def test_a_full_disk_leaves_nothing_and_is_no_error_of_a_place(server, raw, monkeypatch, of, name):
    server.routes["/t"] = server.routes["/u"] = body(GOOD)

    def full(self, *args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(of, name, full)
    with pytest.raises(OSError, match="No space left"):
        fetch(spec(server, "/t", "/u"), raw)
    assert files(raw) == [] and server.hits == ["/t"]
