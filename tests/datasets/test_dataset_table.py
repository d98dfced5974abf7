"""Reading delimited text: exact values and exact error messages."""

import csv
import io
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from fairclust.datasets import DatasetError
from fairclust.datasets.read import TableFile
from fairclust.datasets.spec import ReaderSpec
from fairclust.tables.text import TableError


def open_table(tmp_path, text, **reader):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return TableFile(path, ReaderSpec(**reader))


def column_text(table, column):
    return words(table.read([], [column]), column)


def words(read, column):
    """All cells of a column of text."""
    return read.texts[column].at(slice(None)).tolist()


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
    read = open_table(tmp_path, out.getvalue(), sep=sep).read([2, 0], [1])
    assert_array_equal(read.numbers, [(b, a) for a, _, b in rows])
    assert words(read, 1) == [text.strip() for _, text, _ in rows]


def test_quotes_blanks_and_missing_last_line_end(tmp_path):
    table = open_table(tmp_path, 'n, t\n 1 ," x"\n2,"y, z"\n\n3,"two\nlines"')
    assert table.names == ["n", "t"]
    assert_array_equal(table.read([0]).numbers[:, 0], [1, 2, 3])
    assert column_text(table, 1) == ["x", "y, z", "two\nlines"]
    table = open_table(tmp_path, '1, "y, z", 2\n', header=False, skipinitialspace=True)
    assert column_text(table, 1) == ["y, z"]


def test_decimal_comma_and_encoding(tmp_path):
    table = open_table(
        tmp_path, "größe;t\n1,5;ä\n2,25;ß\n".encode("latin-1"), sep=";", decimal=",", encoding="latin-1"
    )
    assert table.names == ["größe", "t"]
    assert_array_equal(table.read([0]).numbers[:, 0], [1.5, 2.25])
    assert_array_equal(table.read([0], drop_rows={0: ["1,5"]}).numbers[:, 0], [2.25])
    assert column_text(table, 1) == ["ä", "ß"]


def test_byte_order_mark(tmp_path):
    table = open_table(tmp_path, b"\xef\xbb\xbfa,b\n1,2\n")
    assert table.position("a") == 0
    headless = open_table(tmp_path, b"\xef\xbb\xbf1,2\n", header=False)
    assert_array_equal(headless.read([0, 1]).numbers, [[1, 2]])


def test_names_for_a_file_without_header(tmp_path):
    table = open_table(tmp_path, "1,2\n", header=False, names=("a", "b"))
    assert table.position("b") == table.position(1) == 1
    with pytest.raises(DatasetError, match=r"'reader.names' does not fit .* expected 2 names; found 1"):
        open_table(tmp_path, "1,2\n", header=False, names=("a",))
    assert open_table(tmp_path, "1,2\n", header=False).names == ["column 0", "column 1"]


def test_dropping_rows_of_a_feature(tmp_path):
    read = open_table(tmp_path, "a,b\n1,x\n?,y\n,z\n4,?\n").read([0], [1], {0: ["?", ""]})
    assert_array_equal(read.numbers[:, 0], [1, 4])
    assert [d["rows"] for d in read.dropped] == [1, 1]
    with pytest.raises(DatasetError, match=r"found '!' in data row 3, 1 such cell"):
        open_table(tmp_path, "a,g\n1,x\n?,drop\n!,x\n").read([0], [1], {1: ["drop"]})


def test_a_row_is_counted_under_one_reason(tmp_path):
    read = open_table(tmp_path, "a,b\nx,x\nx,y\ny,x\n").read([], [0], {0: ["x"], 1: ["x"]})
    assert [d["rows"] for d in read.dropped] == [2, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n3,x\n4,x\n", "column 'b': a feature has cells that are not finite numbers; found 'x' in "
         "data row 2, 2 such cells in all. Fix: leave the column out"),
        ("a,b\n1,2\n\n3,\n", "column 'b': .*found '' in data row 2, 1 such cell"),
        ("a,b\n1,2\nNaN,2\n", "column 'a': .*found 'NaN' in data row 2"),
        ("a,b\n1,2\n1,-inf\n", "column 'b': .*found '-inf' in data row 2"),
        ("a,b\n1,2\n1,1e999\n", "column 'b': .*found '1e999' in data row 2"),
        ("a,b\n1,1_000\n", "column 'b': .*found '1_000' in data row 1"),
        ("a,b\n1,True\n", "column 'b': .*found 'True' in data row 1"),
        ("a,b;c\n1,2\n3,4,5\n", "t.csv, line 3 has 3 cells, but the first row has 2. Fix: .* the right 'sep' in"),
        ('a,b\n"1\n",2\n3,?\n', "found '\\?' in data row 2"),
        ("a,b\n" + "1,1\n" * 300 + "oops,1\n" + "2,2\n" * 50, "found 'oops' in data row 301, 1 such"),
    ],
)  # fmt: skip
def test_complaints(tmp_path, text, expected):
    with pytest.raises((DatasetError, TableError), match=expected):
        open_table(tmp_path, text).read([0, 1])


DATA = r"the first line of t\.csv looks like data: .*Fix: set 'header: false'"


@pytest.mark.parametrize(
    ("text", "reader", "expected"),
    [
        ("a,t\n1,ä\n".encode("latin-1"), {}, r"no utf-8 text; set 'encoding' in 'reader' to latin-1"),
        ("a,b\n1,2\n", {"encoding": "utf-16"}, r"t\.csv is no utf-16 text; set 'encoding' in 'reader'"),
        *((f"{text}1,2\n3,4\n", {}, DATA) for text in ("# a\n# b\n\n", "% a\n", "// a, b, c\n")),
        ("# made by me\n1,2\n3,4\n", {"header": False}, "line 2 has 2 cells, but the first row has 1"),
        *((f"{row}\n{row}\n", {}, DATA) for row in ("39.5,f", "7,7")),
        *(
            (text, {"format": "arff"}, "the file is no ARFF; found no line with @")
            for text in ("a,b\n1,2\n", "@data\n1,2\n", "@attribute a real\n1\n")
        ),
    ],
)
def test_files_that_cannot_be_opened(tmp_path, text, reader, expected):
    with pytest.raises((DatasetError, TableError), match=expected):
        open_table(tmp_path, text, **reader)


def test_missing_column(tmp_path):
    table = open_table(tmp_path, "age,hours\n1,2\n")
    with pytest.raises(DatasetError, match=r"'hour': no such column; .*did you mean 'hours'"):
        table.position("hour")
    with pytest.raises(DatasetError, match=r"correct the name \(there are: 'age', 'hours'\)"):
        table.position("zzz")
    with pytest.raises(
        DatasetError, match="column '2': no such column; expected a name, or a number from 0 to 1"
    ):
        table.position(2)
    with pytest.raises(DatasetError, match=r"there are: '39', 'f'\), or check 'sep' and 'header'"):
        open_table(tmp_path, "39,f\n40,m\n").position("age")


def test_duplicate_header(tmp_path):
    table = open_table(tmp_path, "a,a\n1,2\n")
    with pytest.raises(DatasetError, match=r"this name twice. Fix: use a number: \[0, 1\]"):
        table.position("a")
    assert_array_equal(table.read([0, 1]).numbers, [[1, 2]])


@pytest.mark.parametrize(
    ("cell", "decimal", "thousands"),
    [
        ("44,954", ".", ","),
        ("1,234.5", ".", ","),
        ("44 954", ".", " "),
        ("4'954", ".", "'"),
        ("1,5", ",", "."),
    ],
)
def test_messages_say_which_signs_would_read_a_cell(tmp_path, cell, decimal, thousands):
    keys = f"which decimal {decimal!r} and thousands {thousands!r} in 'reader' would read"
    with pytest.raises(DatasetError, match=re.escape(keys)):
        open_table(tmp_path, f'a,g\n"{cell}",x\n2,y\n').read([0], [1])
    table = open_table(tmp_path, f'a,g\n"{cell}",x\n2,y\n', decimal=decimal, thousands=thousands)
    assert table.read([0]).numbers[1, 0] == 2


def test_thousands(tmp_path):
    table = open_table(tmp_path, 'a,g\n"44,954",x\n" 1,234,567.5",y\n-7,x\n1e3,y\n?,z\n', thousands=",")
    assert_array_equal(table.read([0], [1], {0: ["?"]}).numbers[:, 0], [44954, 1234567.5, -7, 1000])
    german = open_table(tmp_path, "a;g\n44.954,5;x\n1.234;y\n", sep=";", thousands=".", decimal=",")
    assert_array_equal(german.read([0]).numbers[:, 0], [44954.5, 1234])
    # Without the separator, a point is none beside a comma.
    table = open_table(tmp_path, "a;g\n1,5;x\n44.954;y\n", sep=";", decimal=",")
    for drops in ({}, {0: ["?"]}):
        with pytest.raises(DatasetError, match=r"'44\.954' in data row 2.* thousands '\.' in"):
            table.read([0], [1], drops)


@pytest.mark.parametrize(
    ("reader", "half", "cell", "number"),
    [
        ({"thousands": ","}, "0.5", '"1,234.5"', 1234.5),
        ({"thousands": ".", "decimal": ","}, '"0,5"', '"1.234,5"', 1234.5),
        ({"as_zero": ("NA",)}, "0.5", "NA", 0.0),
    ],
)
def test_a_long_column_may_have_plain_numbers_in_one_part_only(tmp_path, reader, half, cell, number):
    n = 200_000
    table = open_table(tmp_path, "a,g\n" + f"{half},x\n" * n + f"{cell},x\n?,y\n", **reader)
    assert_array_equal(table.read([0], [], {1: ["y"]}).numbers[:, 0], [*[0.5] * n, number])
    with pytest.raises(DatasetError, match=f"found '\\?' in data row {n + 2}, 1 such"):
        table.read([0])


@pytest.mark.parametrize("cell", ["44,95", "4495,400", "1,2", ",123", "1,,234", "12,34,567", "1,234,"])
def test_thousands_separate_three_digits_each(tmp_path, cell):
    table = open_table(tmp_path, f'a,g\n"{cell}",x\n2,y\n', thousands=",")
    with pytest.raises(DatasetError, match=re.escape(f"found {cell!r} in data row 1, 1 such")):
        table.read([0])


ARFF = """% a comment
@RELATION people

@ATTRIBUTE age REAL
@attribute 'marital status' {married, 'not married'}
@attribute	"fee" numeric
@DATA
31.0,'not married',NA

45,married,2
"""


@pytest.mark.parametrize("comma", [",", ", "])
def test_arff(tmp_path, comma):
    reader = {"format": "arff", "quotechar": "'", "skipinitialspace": comma != ","}
    table = open_table(tmp_path, ARFF.replace(",", comma), **reader, as_zero=("NA",))
    assert table.names == ["age", "marital status", "fee"]
    assert_array_equal(table.read([0, 2]).numbers, [[31, 0], [45, 2]])
    assert column_text(table, 1) == ["not married", "married"]
    with pytest.raises(DatasetError, match="found 'NA' in data row 1, 1 such cell"):
        open_table(tmp_path, ARFF.replace(",", comma), **reader).read([0, 2])


def test_cells_that_count_as_zero(tmp_path):
    text = "fee,age,g\nNA,1,NA\n2,2,x\n,3,y\nExempt,?,z\n"
    table = open_table(tmp_path, text, as_zero=("NA", "Exempt", ""))
    read = table.read([0, 1], [2], {1: ["?"]})
    assert_array_equal(read.numbers, [[0, 1], [2, 2], [0, 3]])
    assert column_text(table, 2) == ["NA", "x", "y", "z"]
    with pytest.raises(DatasetError, match=r"column 'age': .* found '\?' in data row 4, 1 such cell"):
        table.read([0, 1])
    blanks = open_table(tmp_path, "fee,g\n1,x\n NA,y\nNA ,x\n  ,y\n2,x\n", as_zero=("NA", ""))
    assert_array_equal(blanks.read([0]).numbers[:, 0], [1, 0, 0, 0, 2])
    truth = open_table(tmp_path, "fee,g\nNA,x\nTrue,y\n", as_zero=("NA",))
    with pytest.raises(DatasetError, match=r"found 'True' in data row 2, 1 such"):
        truth.read([0])
    dropped = open_table(tmp_path, "fee\nNA\n7\n-\n", as_zero=("NA",)).read([0], drop_rows={0: ["-"]})
    assert_array_equal(dropped.numbers[:, 0], [0, 7])
