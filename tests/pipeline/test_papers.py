"""Papers as data: the file of a paper, and the CSV of what it reports."""

import pytest

from fairclust.pipeline.config import ConfigError, load_config
from fairclust.pipeline.papers import ProgramSpec
from fairclust.pipeline.reported import load_programs, load_reported
from small import small_config, small_paper

HEAD = "table,dataset,n_clusters,method,metric,value"
RUN = {"datasets": ["a"], "methods": ["m"]}


def load(folder, text):
    path = folder / f"paper{len(list(folder.iterdir()))}.csv"
    path.write_text(text)
    return load_reported(path)


LAYOUT = {"rows": {"All": {}}, "columns": [{"Cost": {"metric": "sse"}}]}
TABLE = {"number": "1", "title": "T", "layout": LAYOUT}
FRONT = {"plot": "front", "title": "F"}
CLAIM = {"text": "x", "check": "reaches"}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"experiments": []}, "experiments: .*at least one"),
        ({"experiments": [RUN | {"methods": ["mm"]}]}, r"experiments.0.methods: .*'mm'; did you mean 'm'\?$"),
        ({"experiments": [RUN | {"settings": {"q": {}}}]}, "experiments.0.settings: there is no 'q'"),
        ({"tables": {"t": TABLE | {"ours": ["q"]}}}, "tables.t.ours: there is no 'q'"),
        ({"tables": {"t": TABLE | {"title": None}}}, "tables.t.title: "),
        (
            {"tables": {"t": TABLE | {"reasons": [{"reason": "so", "kin": ""}]}}},
            "tables.t.reasons.0.kin: no such",
        ),
        ({"tables": {"t": TABLE, "u": TABLE}}, "? tables: number '1' occurs"),
        ({"tables": {"claims": TABLE}}, "? tables: 'claims' is the file of the paper's claims"),
        ({"figures": {"f": FRONT | {"datasets": ["b"]}}}, "figures.f.datasets: there is no 'b'"),
        ({"claims": {"c": CLAIM | {"methods": ["b"]}}}, "claims.c.methods: there is no 'b'"),
        ({"claims": {"c": CLAIM | {"datasets": []}}}, "claims.c.datasets: .*at least one"),
    ],
)
def test_errors_name_the_key_and_the_fix(changes, message):
    with pytest.raises(ConfigError, match=f"papers.doe.{message}"):
        load_config(small_config(run={"papers": ["doe"]}, papers={"doe": small_paper(**changes)}))


# Reported values


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "cannot be read"),
        ("table,dataset\n1,a\n", r"lacks the columns \['n_clusters', 'method', 'metric', 'value'\]"),
        (f"{HEAD},colour\n", r"unknown columns \['colour'\]"),
        (
            f"{HEAD}\n1,a,3,m,sse,1\n1,a,2.5,m,sse,1\n1,a,,m,sse,1\n1,a,two,m,sse,1\n",
            r"column 'n_clusters' holds something that is no whole number, in line\(s\) \[3, 5\]",
        ),
        (f"{HEAD}\n1,a,3,m,sse,inf\n", r"an infinite number in line\(s\) \[2\]"),
        (f"{HEAD}\n1,a,3,m,sse,\n", r"no value and no note in line\(s\) \[2\]"),
        (f"{HEAD}\n1,a,3,m,sse,1\n1,a,3,m,sse,2\n", r"a value that was already given in line\(s\) \[3\]"),
        (f"{HEAD}\n1,,3,m,sse,1\n", r"an empty name in line\(s\) \[2\]"),
    ],
)
def test_a_wrong_file_of_reported_values_names_line_and_fix(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, text)


PROGRAM_HEAD = (
    "table,dataset,n_clusters,lam,method,metric,program,variant,runs,mean,sd,low,high,setting,seconds,note\n"
)
PROGRAM_LINE = "3,adult,10,9000,vfc,sse,theirs,,3,10.5,0.5,10,11,as shipped,60,\n"


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("10.5", "ten", r"column 'mean' holds something that is no number, in line\(s\) \[3\]"),
        ("theirs", "other", r"a program that the paper's file does not describe \(it has theirs\)"),
        (",sse,", ",cost,", "an unknown metric"),
        (",3,10.5", ",3,", "no runs, mean, low or high"),
        ("last", "", "a value that was already given"),
    ],
)
def test_errors_in_values_of_programs_name_file_and_line(tmp_path, old, new, message):
    path = tmp_path / "p_programs.csv"
    second = PROGRAM_LINE.replace(",,3,", ",last,3,").replace(old, new, 1)
    path.write_text(PROGRAM_HEAD + PROGRAM_LINE + second)
    theirs = ProgramSpec(repository="them/theirs", commit="a1b2c3", changes="none")
    with pytest.raises(ConfigError, match=message) as error:
        load_programs(path, {"theirs": theirs})
    assert "p_programs.csv" in str(error.value)
