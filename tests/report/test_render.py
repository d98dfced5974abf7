import math

import numpy as np
import pandas as pd
import pytest

from fairclust.report.render import (
    Table,
    bound_text,
    escape_latex,
    escape_markdown,
    fixed,
    number,
    plain,
    seconds_text,
    signed_percent,
    table_name,
)


def test_numbers_for_readers():
    assert number(12345.678, 1) == "12,345.7"
    assert number(np.nan, 2) == number(None, 2) == number(pd.NA, 2) == "–"
    assert number(math.inf, 2) == "∞"
    assert number(1116700, -2) == "1,116,700"
    assert (number(0.0, 4), fixed(0.0, 4), number(0.00001, 4)) == ("0", "0.0000", "0.0000")
    assert list(map(seconds_text, (0.0042, 0.157, 4.14, 1234.5, np.nan))) == [
        "0.0042",
        "0.16",
        "4.1",
        "1,234",
        "–",
    ]
    assert signed_percent(0.0123) == "+1.2 %"
    assert signed_percent(0.0001) == signed_percent(-0.0001) == "0.0 %"
    assert signed_percent(np.nan) == "–"
    assert plain(9000.0) == "9,000" and plain(0.05) == "0.05"


def test_distances_with_how_often_they_are_reached_are_numbers():
    entries = ["1.2 %, 3 of 12", "∞, 0 of 1,036", "0.0 % (0.0–0.3 %), 5 of 5", "–"]
    assert Table("T", [{"a": entry, "b": f"x{entry}"} for entry in entries]).numbers == {"a"}
    assert [bound_text(share) for share in (0.0, 1.001e-5, 0.2)] == ["0.000 %", "0.002 %", "20.000 %"]


def test_names_of_tables():
    found = [table_name(number) for number in ("3", "1a", "III and IV", "text")]
    assert found == ["Table 3", "Table 1a", "Tables III and IV", "Text"]


def test_latex_prints_the_text_unchanged():
    assert escape_latex(r"a\b^c") == r"a\textbackslash{}b\textasciicircum{}c"
    assert escape_latex("x_1 & 50 % {#$~}") == r"x\_1 \& 50 \% \{\#\$\textasciitilde{}\}"
    assert escape_latex("1 ± 2 – ∞\n<|>") == r"1 $\pm$ 2 -- $\infty$ \textless{}\textbar{}\textgreater{}"


@pytest.mark.parametrize(
    "text, escaped",
    [
        ("<script>x</script> & y", "&lt;script&gt;x&lt;/script&gt; &amp; y"),
        ("one\ntwo\r\n| three", r"one two \| three"),
        # The backslash must be escaped, too, because otherwise the bar would end the cell.
        ("a\\|b", r"a\\\|b"),
        ("[c](javascript:alert(1))", r"\[c\](javascript:alert(1))"),
        ("![c](https://a.b/c.png)", r"![c\](https://a.b/c.png)"),
        ("[c]: javascript:x and [c][c]", r"\[c\]: javascript:x and [c\][c]"),
        (r"$\input{x}$", r"&#36;\\input\{x\}&#36;"),
        ("_a_ *b* ~~c~~ {: #d }", r"\_a\_ \*b\* &#126;&#126;c&#126;&#126; \{: #d \}"),
        ("``` sh", r"\`\`\` sh"),
        ("`<b>` and `a|b`", r"\`&lt;b&gt;\` and \`a\|b\`"),
        ("# a #", r"\# a \#"),
        ("#1 a", r"\#1 a"),
        ("- a", r"\- a"),
        ("12. a", r"12\. a"),
        ("---", r"\---"),
        ("a\0b\ud800\u202ec", "a b c"),
        # Markdown prints all of these as they are.
        *(
            (text, text)
            for text in ("n_init=10", "-1.5", "+2.0 %", "a=[1.0, 3.0]", "X ** 2", "figure `front`")
        ),
        ("https://a.b/~c_d", "https://a.b/~c_d"),
    ],
)
def test_markdown_prints_the_text_unchanged(text, escaped):
    assert escape_markdown(text) == escaped


def test_latex_takes_no_cell_for_an_argument():
    assert escape_latex("[1em]") == "{}[1em]"
    assert escape_latex("* a\x01b") == "{}* a b"


def test_a_hostile_table():
    table = Table("T", [{"a|b": "x_1 & 50 %\n| <b>", r"c\d": "^"}]).markdown()
    assert len(table) == 3
    assert r"a\|b" in table[0] and r"x_1 &amp; 50 % \| &lt;b&gt;" in table[2]
