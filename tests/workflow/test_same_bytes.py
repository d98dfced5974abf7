"""The same input gives the same scores, byte by byte, with other threads, folders, locales and time zones."""

import pytest

from working_folder import QUIET, Project, table_of

METHODS = {
    "kmeans": {"class": "fairclust.methods.KMeans"},
    "vfc": {"class": "fairclust.methods.VariationalFairKMeans", "grid": {"lam": [1, 10]}},
    "price": {"class": "fairclust.methods.PriceFairKMeans", "params": {"tolerance": 0.05}},
}
TABLE = "sex;a;b\n" + "".join(f"{'fmx'[i % 3]};{i % 13 + i / 7:.4f};{i * i % 17}\n" for i in range(300))


def run(folder, threads=1, cores=1, env=None):
    project = Project(folder)
    project.write("people.csv", TABLE)
    people = table_of({"path": "people.csv"}, reader={"sep": ";"}, n_clusters=4)
    project.config["datasets"]["people"] = people
    project.config["methods"] = METHODS
    project.config["run"] = {"datasets": ["blobs", "people"], "methods": list(METHODS), "seeds": 2}
    project.config |= {"report": QUIET, "jobs": {"threads": threads}}
    process = project.start("--cores", str(cores), env=env)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert set(project.cells().status) == {"ok"}
    return project.scores()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_threads_folder_locale_and_time_zone_change_no_byte(tmp_path):
    first = run(tmp_path / "one")
    assert run(tmp_path / "two", threads=2, cores=2) == first
    elsewhere = tmp_path / "größer als dies" / "x"
    places = {"LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "77"}
    assert run(elsewhere, env=places) == first
    hostile = {
        "OPENBLAS_CORETYPE": "Nehalem",
        "NUMBA_CPU_NAME": "generic",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    }
    assert run(tmp_path / "three", env=hostile) == first
    assert run(tmp_path / "four", env={"LC_ALL": "C", "TZ": "America/St_Johns", "PYTHONUTF8": "0"}) == first
