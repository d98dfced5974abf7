"""The start of a run: it locks the folder of results, and names damaged files, which are then made again."""

import json
import os
import platform
import shutil
import subprocess
import sys
import time

import pytest

from fairclust.outputs import atomic_write, is_alive, remove_leftovers, temporary_beside
from fairclust.pipeline.results_folder import (
    damaged_jobs,
    foreign_folder,
    forget_failures,
    lock,
    mend_time_stamps,
    remove_damaged_metadata,
    tidy,
    write_digests,
)
from working_folder import wait_until


@pytest.fixture
def results(tmp_path):
    """Write the outputs of two jobs and their digests."""
    folder = tmp_path / "results"
    for names in (("scores/scores.csv", "scores/scores.parquet"), ("tables/a.md",)):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"the content of {name}")
        log = folder / "logs" / f"{names[0]}.log"
        log.parent.mkdir(parents=True)
        write_digests([str(folder / name) for name in names], log)
    return folder


def outputs(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and "logs" not in path.parts
    }


def test_intact_results_are_left_alone_in_any_folder(results, tmp_path):
    before = outputs(results)
    assert tidy(results) == []
    results.rename(tmp_path / "elsewhere")
    assert tidy(tmp_path / "elsewhere") == []
    assert outputs(tmp_path / "elsewhere") == before


@pytest.mark.parametrize("damage", ["flip", "truncate", "zero", "empty"])
def test_a_damaged_file_is_named_and_all_of_its_job_is_made_again(results, damage):
    path = results / "scores/scores.csv"
    content, stat = bytearray(path.read_bytes()), path.stat()
    content[7] ^= 1
    changed = {"flip": content, "truncate": content[:-1], "zero": bytes(len(content)), "empty": b""}[damage]
    path.write_bytes(changed)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    before = outputs(results)
    assert damaged_jobs(results) == {"scores/scores.csv": (1, [path])}
    (line,) = tidy(results)
    assert line.startswith(f"{path} is damaged or was changed; a copy lies in {path}.damaged")
    kept = path.with_name("scores.csv.damaged")
    assert kept.read_bytes() == path.read_bytes() == changed
    assert tidy(results) == [line]
    path.write_bytes(b"changed again")
    assert "scores.csv.damaged-2" in tidy(results)[0]
    assert kept.read_bytes() == changed
    assert before.keys() <= outputs(results).keys()


def test_a_missing_file_is_named_unless_all_of_its_job_is_missing(results):
    (results / "scores/scores.csv").unlink()
    (results / "tables/a.md").unlink()
    assert tidy(results) == [f"{results}/scores/scores.csv is missing; it is made again."]
    assert set(outputs(results)) == {"scores/scores.parquet"}


def test_damaged_digests_remove_nothing(results, tmp_path):
    mine = tmp_path / "thesis.tex"
    mine.write_text("years of work")
    digests = results / "logs/scores/scores.csv.sha256"
    whole = digests.read_bytes()
    lines = [f"{'0' * 64}  {name}".encode() for name in ("../../../thesis.tex", str(mine), "a\0b", "")]
    flips = [whole[:i] + bytes([whole[i] ^ 1 << i % 8]) + whole[i + 1 :] for i in range(len(whole))]
    for content in (*lines, *flips, b"", bytes(50), b"\xff\xfe", whole[: len(whole) // 2]):
        write_digests([str(path) for path in (results / "scores").iterdir()], digests.with_suffix(".log"))
        digests.write_bytes(content)
        tidy(results)
        assert mine.read_text() == "years of work"
        assert (results / "tables/a.md").is_file()
        for name in ("scores/scores.csv", "scores/scores.parquet"):
            assert (results / name).read_text() == f"the content of {name}"


def test_time_stamps_of_the_future_are_set_to_now(results):
    ahead = results / "tables/a.md"
    os.utime(ahead, (time.time() + 7200,) * 2)
    (line,) = mend_time_stamps(results)
    assert "ahead of this machine's clock" in line
    assert ahead.stat().st_mtime <= time.time()
    assert list(mend_time_stamps(results)) == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": "\xa0"}', bytes(20)])
def test_damaged_records_of_snakemake_are_removed(tmp_path, content):
    (tmp_path / "deep").mkdir()
    good, bad = tmp_path / "deep/good", tmp_path / "bad"
    good.write_text('{"rule": "fit"}')
    bad.write_bytes(content)
    assert remove_damaged_metadata(tmp_path) == [
        f"{bad}, a record of Snakemake, was damaged and has been removed."
    ]
    assert not bad.exists() and good.exists()


HOLD = "import sys, time\nfrom pathlib import Path\nfrom fairclust.pipeline.results_folder import lock\n"
HOLD += "held = lock(Path(sys.argv[1]))\nprint(held is not None, flush=True)\ntime.sleep(60)"


def test_a_second_run_is_refused_and_a_killed_run_leaves_no_lock(results):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, results], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "True\n"
    assert lock(results) is None
    holder.kill()
    holder.wait()
    mine = lock(results)
    assert mine is not None
    mine.close()


def test_temporary_files_of_dead_processes_are_removed_and_no_others(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    mine = temporary_beside(tmp_path / "a" / "index.html")
    mine.parent.mkdir()
    mine.write_text("")
    dead = {}
    for ending in ("tmp", "part", "npz", "new", "old"):
        name = temporary_beside(mine, ending).name.replace(f".{os.getpid()}@", f".{gone.pid}@")
        dead[ending] = mine.with_name(name)
        if ending in ("new", "old"):
            dead[ending].mkdir()
        (dead[ending] / "X.npy" if dead[ending].is_dir() else dead[ending]).write_text("")
    far = mine.with_name(mine.name.replace(f"@{platform.node()}.", "@another.machine."))
    old = far.with_name(far.name.replace("index", "page"))
    for path in (far, old):
        path.write_text("")
    os.utime(old, (1e9, 1e9))
    user = mine.with_name(".notes.tmp")
    user.write_text("")
    assert set(remove_leftovers(tmp_path)) == {*dead.values(), old}
    assert {path.name for path in mine.parent.iterdir()} == {mine.name, far.name, user.name}
    with atomic_write(tmp_path / "file"):
        assert remove_leftovers(tmp_path) == []
    assert (tmp_path / "file").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_zombie_process_counts_as_ended(tmp_path):
    child = subprocess.Popen(["true"])
    # It becomes a zombie, because this process, its parent, has not waited for it.
    wait_until(lambda: not is_alive(child.pid), 4)
    child.wait()
    assert is_alive(os.getpid())


def test_failures_leave_the_cache_between_workflows_and_stay_in_the_results(tmp_path, monkeypatch):
    cache, data = tmp_path / "cache", tmp_path / "results/data"
    monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(cache))
    outputs = {"raw/far": "unavailable", "prepared/far": "skipped", "prepared/toy": "ok", "graphs/gone": "ok"}
    for name, status in outputs.items():
        entry, folder = cache / name, data / name
        entry.mkdir(parents=True)
        card = "source.json" if name.startswith("raw") else "card.json"
        (entry / card).write_text(json.dumps({"status": status}))
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.symlink_to(entry)
    shutil.rmtree(cache / "graphs/gone")
    forget_failures(tmp_path / "results")
    assert {path.parent.relative_to(cache).as_posix() for path in cache.rglob("*.json")} == {"prepared/toy"}
    assert {path.name for path in data.glob("*/*")} == {"far", "toy"} and (data / "prepared/toy").is_symlink()
    for card in ("raw/far/source.json", "prepared/far/card.json"):
        assert not (data / card).parent.is_symlink() and (data / card).is_file()


def test_a_folder_with_other_files_is_not_taken_for_results(tmp_path):
    results, mine = tmp_path / "results", tmp_path / "mine"
    assert foreign_folder(results) == ""
    (results / "quickstart").mkdir(parents=True)
    (results / "README.md").touch()
    lock(results / "quickstart").close()
    assert foreign_folder(results) == ""
    (mine / "tables").mkdir(parents=True)
    assert "mine' cannot be the folder of results, because this folder holds 'tables'" in foreign_folder(mine)
    assert "this folder holds 'mine'" in foreign_folder(tmp_path)
    lock(mine).close()
    assert foreign_folder(mine) == ""
    (results / "gone").symlink_to("nowhere")
    for name in ("README.md", "README.md/below", "gone"):
        assert "a file has its name" in foreign_folder(results / name)
