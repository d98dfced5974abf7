"""Texts that are handed on contain no path of the machine, and everything that is not a path stays."""

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairclust.cli.publish import copy_redacted
from fairclust.pipeline.scores import read_arrow, write_arrow
from fairclust.report.redaction import redact_config, redact_csv, redact_text

PATHS = [
    ("no such file: /home/anna/a.csv", "no such file: a.csv"),
    ("is a folder: /home/anna/data", "is a folder: (folder)"),
    ("a folder: /home/anna/data/.", "a folder: (folder)."),
    ("/home/anna/: not there", "(folder): not there"),
    ("tried /home//anna/x/ and ~anna/x", "tried (folder) and (folder)"),
    ("[Errno 13] Permission denied: '/home/anna b/x'", "[Errno 13] Permission denied: '(folder)'"),
    ("'file:///home/anna b/a.csv', twice", "'a.csv', twice"),
    ("file:///home/anna/a.csv is broken", "a.csv is broken"),
    ("(see ~/of anna/a.csv)", "(see (folder) anna/a.csv)"),  # unquoted: a space ends a path
    ('File "/home/anna/m.py", line 3', 'File "m.py", line 3'),
    ("/home/anna/m.py:12: error", "m.py:12: error"),
    ("mirror=/home/anna;/srv/anna", "mirror=(folder);(folder)"),
    ("//server/anna/a.csv", "a.csv"),
    ("anna's home is /home/anna.smith", "anna's home is (folder)"),
    (r"no C:\Users\anna\a.csv: gone", "no a.csv: gone"),
    (r"no C:\Users\anna smith\data (there)", "no (folder) (there)"),
    (r"'C:\\Users\\anna b\\x'", "'(folder)'"),
    ("C:/Users/anna/x, D:/anna/y.csv.gz", "(folder), y.csv.gz"),
    ("file:///C:/Users/anna/x", "(folder)"),
    (r"no \\server\anna\a.csv", "no a.csv"),
    (r"'\\\\server\\anna share\\x'", "'(folder)'"),
    ("'/home/anna s/o'brien data/a.csv' is gone", "'a.csv' is gone"),
    ("'/home/o'brien/x', '/srv/y z'", "'(folder)', '(folder)'"),
    ("https://anna:se@cret@example.org/x", "https://example.org/x"),
    ("https://anna:secret@example.org/d/e.csv?p=/a/b", "https://example.org/d/e.csv?p=/a/b"),
]
NO_PATHS = [
    *("n/a", "balance/cost", "and/or", "3/4 is no float", "+3.0 % / 2", "~3/4", "1/2/3", "rows /s"),
    *("/", "//", "sep='/'", "'//'"),
    *("https://example.org/d/e.csv", "http://localhost:8000/a/b", "results/data/raw/adult", "../shared/data"),
    *("VFC K-means, accelerated", "SFC (p/q)", "(a+b)/c/d", "K:3", "C: 4", "a<br/>b", "Kim et al. 2025"),
    *(r"0.1 & \textbf{0.2} \\", r"\\ \midrule", r"\hline\\", r"\multicolumn{3}{l}{Bank/Adult/all} \\"),
    *("0.97 (<= 1/2)", "s/it", "TCP/IP/UDP", "24/7", "2026-01-02T10:00:00", "text/csv; charset"),
]


@pytest.mark.parametrize(("text", "expected"), PATHS)
def test_paths_are_removed(text, expected):
    assert redact_text(text) == expected
    # The path is within other text and occurs twice.
    assert redact_text(f"x {text}\n{text}") == f"x {expected}\n{expected}"
    assert redact_text(expected) == expected


@pytest.mark.parametrize("text", NO_PATHS)
def test_texts_that_are_not_paths_stay(text):
    assert redact_text(text) == text
    assert redact_config(text) == text


def test_a_value_of_the_configuration_is_a_path_as_a_whole():
    config = {
        "mirror": ["/home/anna b/data", "https://example.org/d", "~anna/x y"],
        "datasets": {"mine": {"source": {"path": r"C:\Users\anna b\my people.csv"}, "reader": {"sep": "/"}}},
        "results": "/anna",
        "limits": {"cell_seconds": 3600, "strict": None},
    }
    assert redact_config(config) == {
        "mirror": ["(folder)", "https://example.org/d", "(folder)"],
        "datasets": {"mine": {"source": {"path": "my people.csv"}, "reader": {"sep": "/"}}},
        "results": "(folder)",
        "limits": {"cell_seconds": 3600, "strict": None},
    }


def test_fields_of_a_csv_are_texts_of_their_own():
    rows = [["reason", "params", "x"], ["/home/anna/x, and more", '{"path": "/home/anna b/a.csv"}', "0.10"]]
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    assert list(csv.reader(io.StringIO(redact_csv(stream.getvalue())))) == [
        rows[0],
        ["(folder), and more", '{"path": "a.csv"}', "0.10"],
    ]


NAME = st.text("abcXYZ019_-", min_size=1, max_size=8)


@given(st.lists(NAME, min_size=1, max_size=5), st.sampled_from(["/home", "~", "C:", r"\\host", "//host"]))
def test_no_part_of_a_path_is_left(parts, root):
    sep = "\\" if root in ("C:", r"\\host") else "/"
    path = sep.join([root, "Anna", *parts])
    assert redact_text(f"cannot read {path}") == "cannot read (folder)"
    assert redact_text(f"cannot read {path}{sep}a.csv: why") == "cannot read a.csv: why"


def test_published_tables_and_scores_lose_the_paths_of_the_machine(tmp_path):
    table, scores = tmp_path / "reproduction.md", tmp_path / "scores.parquet"
    table.write_text("| no /home/somebody/f.csv|\n| +3.0 % / 2 |\n")
    columns = {
        "params": ["{}", '{"path": "~/of somebody/c.csv"}', None],
        "reason": ["in /home/somebody/b.csv", None, ""],
    }
    given = pa.table({**columns, "sse": [1.5, None, 0.1], "n": [1, None, 2]})
    write_arrow(scores, given)
    for path in (table, scores):
        copy_redacted(path, tmp_path / "out" / path.name)
    assert (tmp_path / "out/reproduction.md").read_text() == "| no f.csv|\n| +3.0 % / 2 |\n"
    found = read_arrow(tmp_path / "out/scores.parquet")
    assert found.schema == given.schema and found.select(["sse", "n"]) == given.select(["sse", "n"])
    assert found["reason"].to_pylist() == ["in b.csv", None, ""]
    assert found["params"].to_pylist() == ["{}", '{"path": "c.csv"}', None]
