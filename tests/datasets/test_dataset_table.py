"""Reading delimited text: exact values and exact error messages."""

import csv
import io
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fairclust.datasets import DatasetError
from fairclust.datasets.read import Table
from fairclust.datasets.spec import ReaderSpec
from fairclust.tables import TableError


class Found(NamedTuple):
    """Columns of a file in the order in which they were asked for."""

    numbers: np.ndarray
    texts: list[list[str]]
    dropped: list[dict]


def read(folder, text, numbers=(), texts=(), drops=None, *, name="t.csv", **reader):
    """Read columns of a file, which are given by name or number."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())

    table = Table(path, ReaderSpec(**reader))
    numbers, texts = [*map(table.place, numbers)], [*map(table.place, texts)]
    frame, card = table.read(numbers, texts, drops)
    return Found(frame[numbers].to_numpy(), [frame[i].tolist() for i in texts], card["dropped"])


def words(found):
    """All cells of the first column of text."""
    return found.texts[0]


cell = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters="\u2028\u2029"),
    max_size=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), cell, st.integers(-(2**53), 2**53)),
        min_size=1,
        max_size=30,
    ),
    sep=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_was_written_is_read(tmp_path, rows, sep, end):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=sep, lineterminator=end)
    writer.writerow(["a", "text", "b"])
    writer.writerows((repr(a), text, b) for a, text, b in rows)
    found = read(tmp_path, out.getvalue(), [2, 0], [1], sep=sep)
    assert_array_equal(found.numbers, [(b, a) for a, _, b in rows])
    assert words(found) == [text.strip() for _, text, _ in rows]


def test_decimal_comma_and_encoding(tmp_path):
    text, reader = "größe;t\n1,5;ä\n2,25;ß\n".encode("latin-1"), {"decimal": ",", "encoding": "latin-1"}
    found = read(tmp_path, text, ["größe"], ["t"], **reader)
    assert_array_equal(found.numbers[:, 0], [1.5, 2.25])
    assert words(found) == ["ä", "ß"]
    assert_array_equal(read(tmp_path, text, [0], drops={0: ["1,5"]}, **reader).numbers[:, 0], [2.25])


def test_names_for_a_file_without_header(tmp_path):
    assert_array_equal(read(tmp_path, "1,2\n", ["b", 0], header=False, names=("a", "b")).numbers, [[2, 1]])
    assert Table(tmp_path / "t.csv", ReaderSpec(header=False)).names == ["column 0", "column 1"]
    with pytest.raises(TableError, match=r"the names do not fit .* expected 2 names; found 1"):
        read(tmp_path, "1,2\n", header=False, names=("a",))


def test_a_row_that_is_left_out_is_logged(tmp_path, caplog):
    rows = "".join(f"{number};{'xy'[number % 2]}\n" for number in range(6))
    assert_array_equal(read(tmp_path, f"n;t\nin m;kind\n{rows}", ["n"], sep=";").numbers[:, 0], range(6))
    assert "t.csv: a row below the names of the columns is left out" in caplog.text


def test_dropping_rows_of_a_feature(tmp_path):
    found = read(tmp_path, "a,b\n1,x\n?,y\n,z\n4,?\n", [0], [1], {0: ["?", ""]})
    assert_array_equal(found.numbers[:, 0], [1, 4])
    assert [of["rows"] for of in found.dropped] == [1, 1]
    with pytest.raises(DatasetError, match=r"found '!' in data row 3, 1 such cell"):
        read(tmp_path, "a,g\n1,x\n?,drop\n!,x\n", [0], [1], {1: ["drop"]})
    # A row is counted under one reason.
    found = read(tmp_path, "a,b\nx,x\nx,y\ny,x\n", drops={0: ["x"], 1: ["x"]})
    assert [of["rows"] for of in found.dropped] == [2, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n", "has a header and no rows"),
        ("a,b\n1,2\n3,x\n4,x\n", "column 'b': a column of numbers has cells that are not finite numbers; found 'x' in "
         "data row 2, 2 such cells in all. Fix: list the column under"),
        ("a,b\n1,2\n\n3,\n", "column 'b': .*found '' in data row 2, 1 such cell"),
        ("a,b\n1,2\nNaN,2\n", "column 'a': .*found 'NaN' in data row 2"),
        ("a,b\n1,2\n1,-inf\n", "column 'b': .*found '-inf' in data row 2"),
        ("a,b\n1,2\n1,1e999\n", "column 'b': .*found '1e999' in data row 2"),
        ("a,b\n1,True\n", "column 'b': .*found 'True' in data row 1"),
        ('a,b\n"1\n",2\n3,?\n', "found '\\?' in data row 2"),
        ("a,b\n" + "1,1\n" * 300 + "oops,1\n" + "2,2\n" * 50, "found 'oops' in data row 301, 1 such"),
        *((f'a,b\n"{cell}",1\n2,3\n', f"found {cell!r} in data row 1, 1 such")
          for cell in ("44,95,1", ",1,23", "1,,234", "1,234,")),
    ],
)  # fmt: skip
def test_complaints(tmp_path, text, expected):
    with pytest.raises((DatasetError, TableError), match=expected):
        read(tmp_path, text, [0, 1])


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "@data\n1,2\n", "@attribute a real\n1\n"])
def test_files_that_cannot_be_opened(tmp_path, text):
    with pytest.raises(TableError, match="is no ARFF; found no line with @"):
        read(tmp_path, text, name="t.arff")


@pytest.mark.parametrize(
    ("column", "text", "expected"),
    [
        ("hour", "age,hours\n1,2\n", "'hour': no such column; .*did you mean 'hours'"),
        ("zzz", "age,hours\n1,2\n", r"correct the name \(there are: 'age', 'hours'\)"),
        (2, "age,hours\n1,2\n", "column '2': no such column; expected a name, or a number from 0 to 1"),
        ("age", "39,f\n40,m\n", r"there are: '39', 'f'\), or check 'sep' and 'header'"),
        ("a", "a,a\n1,2\n", r"this name twice. Fix: use a number: \[0, 1\]"),
    ],
)
def test_columns_that_are_not_there_or_there_twice(tmp_path, column, text, expected):
    with pytest.raises(TableError, match=expected):
        read(tmp_path, text, [column])
    assert_array_equal(read(tmp_path, "a,a\n1,2\n", [0, 1]).numbers, [[1, 2]])


@pytest.mark.parametrize(
    ("reader", "half", "cell", "number"),
    [
        ({}, "0.5", '"1,234.5"', 1234.5),
        ({"decimal": ","}, '"0,5"', '"1.234,5"', 1234.5),
        ({"as_zero": ("NA",)}, "0.5", "NA", 0.0),
    ],
)
def test_a_long_column_may_have_plain_numbers_in_one_part_only(tmp_path, reader, half, cell, number):
    n = 200_000
    text = "a,g\n" + f"{half},x\n" * n + f"{cell},x\n?,y\n"
    assert_array_equal(
        read(tmp_path, text, [0], [], {1: ["y"]}, **reader).numbers[:, 0], [*[0.5] * n, number]
    )
    with pytest.raises(DatasetError, match=f"found '\\?' in data row {n + 2}, 1 such"):
        read(tmp_path, text, [0], **reader)


def test_cells_that_count_as_zero(tmp_path):
    text, zeros = "fee,age,g\nNA,1,NA\n2,2,x\n,3,y\nExempt,?,z\n", ("NA", "Exempt", "")
    found = read(tmp_path, text, [0, 1], [2], {1: ["?"]}, as_zero=zeros)
    assert_array_equal(found.numbers, [[0, 1], [2, 2], [0, 3]])
    assert words(found) == ["NA", "x", "y"]
    with pytest.raises(DatasetError, match=r"column 'age': .* found '\?' in data row 4, 1 such cell"):
        read(tmp_path, text, [0, 1], as_zero=zeros)
    blanks = read(tmp_path, "fee,g\n1,x\n NA,y\nNA ,x\n  ,y\n2,x\n", [0], as_zero=("NA", ""))
    assert_array_equal(blanks.numbers[:, 0], [1, 0, 0, 0, 2])
    with pytest.raises(DatasetError, match=r"found 'True' in data row 2, 1 such"):
        read(tmp_path, "fee,g\nNA,x\nTrue,y\n", [0], as_zero=("NA",))
    dropped = read(tmp_path, "fee\nNA\n7\n-\n", [0], drops={0: ["-"]}, as_zero=("NA",))
    assert_array_equal(dropped.numbers[:, 0], [0, 7])
