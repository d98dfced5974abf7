"""Prepared data sets on disk: round trip, skips, all or nothing."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fairclust.datasets import (
    DatasetError,
    DatasetSkipped,
    DatasetSpec,
    PreparedDataset,
    load_prepared,
    prepare_dataset,
    save_prepared,
    write_skipped,
)
from fairclust.datasets.store import read_card


def make(seed: int = 0) -> PreparedDataset:
    spec = DatasetSpec(
        title="Toy",
        generator="fairclust.datasets.blobs:make_group_blobs",
        params={"n_rows": 50, "seed": seed},
        n_clusters=3,
    )
    return prepare_dataset("toy", spec, {})


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("mmap", [False, True])
def test_round_trip(tmp_path: Path, mmap: bool) -> None:
    ds = make()
    save_prepared(ds, tmp_path / "deep" / "toy")
    back = load_prepared(tmp_path / "deep" / "toy", mmap=mmap)
    assert_array_equal(back.X, ds.X)
    assert_array_equal(back.groups, ds.groups)
    assert (back.X.dtype, back.groups.dtype) == (np.float64, np.int32)
    assert (back.feature_names, back.group_names) == (ds.feature_names, ds.group_names)
    assert back.card == json.loads(json.dumps(ds.card))
    assert isinstance(back.X, np.memmap) == mmap
    assert names(tmp_path / "deep") == ["toy"]
    assert names(tmp_path / "deep" / "toy") == ["X.npy", "card.json", "groups.npy"]


def test_others_may_read_it(tmp_path: Path) -> None:
    """A folder made by mkdtemp would be closed to the colleagues on a cluster."""
    before = os.umask(0o022)
    try:
        save_prepared(make(), tmp_path / "toy")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "toy").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "toy" / "X.npy").stat().st_mode) == 0o644


def test_replaces_an_older_one(tmp_path: Path) -> None:
    save_prepared(make(0), tmp_path / "toy")
    (tmp_path / "toy" / ".snakemake_timestamp").touch()
    save_prepared(make(1), tmp_path / "toy")
    assert load_prepared(tmp_path / "toy").card["data_hash"] == make(1).card["data_hash"]
    assert names(tmp_path) == ["toy"]


def test_foreign_files_are_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "thesis.tex").touch()
    with pytest.raises(DatasetError, match=r"holds other files \(thesis.tex\)"):
        save_prepared(make(), tmp_path / "toy")
    assert names(tmp_path / "toy") == ["thesis.tex"]


def test_failure_while_writing_leaves_the_old_one(tmp_path: Path) -> None:
    save_prepared(make(0), tmp_path / "toy")
    broken = make(1)
    broken.card["scaling"] = {np.nan}  # no JSON: fails after both arrays have been written
    with pytest.raises(TypeError):
        save_prepared(broken, tmp_path / "toy")
    assert load_prepared(tmp_path / "toy").card["data_hash"] == make(0).card["data_hash"]
    assert names(tmp_path) == ["toy"]


def test_failure_while_writing_leaves_nothing(tmp_path: Path) -> None:
    broken = make()
    broken.card["scaling"] = float("nan")
    with pytest.raises(ValueError, match="not JSON compliant"):
        save_prepared(broken, tmp_path / "toy")
    assert names(tmp_path) == []


def test_failure_while_renaming_brings_the_old_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_prepared(make(0), tmp_path / "toy")
    rename = Path.rename

    def fail_for_the_new_one(self: Path, target: Path) -> Path:
        if self.suffix == ".new":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(OSError, match="Input/output"):
        save_prepared(make(1), tmp_path / "toy")
    assert load_prepared(tmp_path / "toy").card["data_hash"] == make(0).card["data_hash"]
    assert names(tmp_path) == ["toy"]


def test_skipped(tmp_path: Path) -> None:
    write_skipped(tmp_path / "census", "census_ii", "no network")
    card = json.loads((tmp_path / "census" / "card.json").read_text())
    assert card == {"status": "skipped", "name": "census_ii", "reason": "no network"}
    with pytest.raises(DatasetSkipped, match=r"^no network$"):
        load_prepared(tmp_path / "census")
    save_prepared(make(), tmp_path / "census")
    assert load_prepared(tmp_path / "census").card["status"] == "ok"
    write_skipped(tmp_path / "census", "census_ii", "gone again")
    assert names(tmp_path / "census") == ["card.json"]


def test_a_skip_is_not_an_error() -> None:
    assert not issubclass(DatasetSkipped, DatasetError)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"holds no data card .*Fix: delete it, run again"):
        load_prepared(tmp_path / "none")


def test_card_alone(tmp_path: Path) -> None:
    save_prepared(make(), tmp_path / "toy")
    (tmp_path / "toy" / "X.npy").unlink()
    assert read_card(tmp_path / "toy")["data_hash"] == make().card["data_hash"]
    write_skipped(tmp_path / "toy", "toy", "no network")
    assert read_card(tmp_path / "toy")["reason"] == "no network"
    (tmp_path / "toy" / "card.json").write_text("{")
    with pytest.raises(DatasetError, match="holds no data card"):
        read_card(tmp_path / "toy")


def test_damaged(tmp_path: Path) -> None:
    save_prepared(make(), tmp_path / "toy")
    (tmp_path / "toy" / "X.npy").write_bytes(b"")
    with pytest.raises(DatasetError, match="holds no prepared data set"):
        load_prepared(tmp_path / "toy")


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    save_prepared(make(), tmp_path / "toy")
    np.save(tmp_path / "toy" / "groups.npy", np.zeros(3, dtype=np.int32))
    with pytest.raises(DatasetError, match="do not fit the card"):
        load_prepared(tmp_path / "toy")


def test_pickles_are_not_loaded(tmp_path: Path) -> None:
    save_prepared(make(), tmp_path / "toy")
    np.save(tmp_path / "toy" / "groups.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DatasetError, match="allow_pickle=False"):
        load_prepared(tmp_path / "toy")
