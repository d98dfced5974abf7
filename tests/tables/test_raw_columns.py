"""What becomes of columns: units, odd cells, codes, truth values, scales, and cells far from all others."""

import numpy as np
import pandas as pd
import pytest

from fairclust.tables import TableError, decide, numbers
from fairclust.tables.cells import are_truths, measured, steps
from fairclust.tables.columns import Asked, understand
from fairclust.tables.preparation import encoded_names

N = 400


def column(cells, name="x", **asked):
    """Return the column as it is understood, beside another column of numbers."""
    other = np.random.default_rng(1).normal(size=len(cells))
    return understand(pd.DataFrame({name: cells, "other": other}), Asked(**asked))[0]


def read(cells, name="x", **asked):
    """Return the numbers that the cells of a column are taken for."""
    found = column(cells, name, **asked)
    assert found.role in ("number", "ordered"), found
    return numbers(pd.Series(cells, name=name), found.reading)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("€ 42,253.92", 42253.92), ("$1,234.50", 1234.5), ("EUR 1,200", 1200), ("CHF 1'234.50", 1234.5),
        ("1,234.50 kr", 1234.5), ("R$ 5", 5), ("₹1,20,000", 120000), ("25.1%", 25.1), ("25.1 %", 25.1),
        ("12.5 km", 12.5), ("12.5km/h", 12.5), ("3 m²", 3), ("-5 °C", -5), ("−5", -5), ("5-", -5),
        ("(120.69)", -120.69), ("($5.00)", -5), ("1\u202f234.50", 1234.5), ("1\u00a0234", 1234),
        ("1.2e3", 1200), ("3/4", 0.75), ("1½", 1.5), ("4.5/5", 0.9), ("4,5/5", None),
        ("90+", 90), ("7:45", 7.75), ("7 h 45", 7.75), ("2h30min", 2.5), ("12345678B", 12345678), ("1:30:00", 1.5),
        ("2h 15m", 2.25), ("3 Tage 12 Std.", 3.5), ("5 ft 6 in", 5.5), ("10 st 7 lb", 10.5), ("1 an et 6 mois", 1.5),
        ("6 min 30 s", 6.5), ("18y 9m", 18.75), ("5 km 3 h", None), ("3 h 2 d", None), ("27/30", 0.9),
        ("7/10", 0.7), ("4 out of 5", 4), ("12/10", 1.2), ("5'6\"", 5.5), ("'21", 21), ("<5", 5), ("~5", 5),
        ("3/4 km", 0.75), ("12/3 A", None), ("7:30 pm", 19.5), ("12:05 a.m.", 1 / 12), ("7:30 xm", None),
        ("1m83", 1.83), ("15*", 15), ("18[1]", 18), ("22 (est.)", 22), ("4 or more", 4), ("45 years old", 45),
        ("USD 45m", 45e6), ("45 T€", 45e3), ("5.4 l/100 km", 5.4), ("4:30/km", 4.5), ("5 m²", 5),
        ("1:45.5", 105.5 / 3600), ("3.8/4.0", 0.95), ("3+ doses", 3), ("5 percent", 5),
        ("1.2M", 1.2e6), ("$3.5 million", 3.5e6), ("12k€", 12e3), ("100,-", 100), ("٣", 3), ("120/80", None),
        ("1'005.-", 1005), ("5 m3/h", 5), ("90 mL/min/1.73 m²", 90), ("4.5 x10^9/L", 4.5), ("250 10⁹/L", 250),
        ("1,200 ft2", 1200), ("95 ft2", 95), ("5 ft2", 5), ("12 ft 3", 12.25), ("5 ft 2", 5 + 1 / 6), ("94¹⁾", 94),
        ("12 %¹", 12), ("5 ft²", 5), ("3 cm²", 3), ("Euro 5", None), ("€10 mn", 1e7), ("%1.5", 1.5), ("1.2万元", 12e3),
        ("4.5 out of 5 stars", 4.5), ("2 lata", 2), ("2 139:-", 2139), ("+/-5", 5), ("62 1/min", 62),
        ("8.9 x 10^5", 890e3), ("14.30 Uhr", 14.5), ("2:05 min", 125 / 3600), ("350 mille", 350e3), ("3 mld", 3e9),
        ("21st", 21), ("3º", 3), ("70¹", 70), ("3.5²", 3.5), ("15³ kg", 15), ("4.5x10⁹", 4.5e9), ("110³", 110),
        ("11st 7 lb", 11.5), ("3ème", 3), ("5'11\"", 5 + 11 / 12), ("4'40\"", None),
        ("P123", None), ("Q3", None), ("2020-01-01", None), ("1,5", None), ("10-20", None), ("(5", None),
        ("", None), ("km", None), ("5 lat 3 mies.", 5.25), ("3年6ヶ月", 3.5), ("50 тыс. руб.", 5e4), ("Rp 9", 9),
    ],
)  # fmt: skip
def test_a_cell_that_states_a_number(text, number):
    found = measured(text, ".")
    assert (None if found is None else found[0]) == (None if number is None else pytest.approx(number))


def test_decimal_commas_and_blanks_are_found_in_each_column():
    values = np.random.default_rng(0).uniform(1000, 9000, N).round(2)
    for before, after in ((",", "."), (".", ","), ("\u202f", ",")):
        cells = [
            f"{value:,.2f}".replace(",", "#").replace(".", after).replace("#", before) for value in values
        ]
        np.testing.assert_allclose(read(cells), values)


def test_a_point_before_three_digits_separates_thousands_of_money():
    rents = np.random.default_rng(0).integers(400, 2400, N)
    np.testing.assert_array_equal(read([f"EUR {rent:,}".replace(",", ".") for rent in rents]), rents)
    np.testing.assert_array_equal(read([*["950", "1.050"] * 50, "1.234.567"])[-2:], [1050, 1234567])
    # Weights in kilograms with three decimals.
    weights = np.random.default_rng(0).uniform(0.1, 9, N).round(3)
    np.testing.assert_allclose(read([f"{weight:.3f} kg" for weight in weights]), weights)


def test_names_of_amounts_and_limits_are_not_taken_for_codes_and_marks():
    counts = [str(1 + i * i % 997) for i in range(N)]
    assert column(counts, "code_length").role == "number"
    assert column(counts, "error_code").role != "number"
    np.testing.assert_allclose(read(["1", "2", "3+", "4+"] * 30), [1, 2, 3, 4] * 30)
    assert column(["1+", "1", "1-", "2+"] * 30).role == "ordered"


def test_units_of_one_kind_are_converted_and_others_are_an_error():
    np.testing.assert_allclose(read(["1.5 km", "500 m", "2 km"] * 40), [1.5, 0.5, 2.0] * 40)
    np.testing.assert_allclose(read(["2 Stunden", "90 min", "1h30"] * 40), [2, 1.5, 1.5] * 40)
    np.testing.assert_allclose(
        read(["1h", "90m", "45m", "1h 30 mn", "6 mn"] * 40), [1, 1.5, 0.75, 1.5, 0.1] * 40
    )
    # A few times among metres or prices are odd cells.
    np.testing.assert_allclose(read(["90 m"] * 119 + ["3 years"]), [90] * 119 + [np.nan])
    np.testing.assert_allclose(read(["€ 57.95"] * 119 + ["12 h"]), [57.95] * 119 + [np.nan])
    np.testing.assert_allclose(read(["5 J.", "8 Mon.", "6 Mon."] * 40), [60, 8, 6] * 40)
    # Minutes and seconds stand beside hours, but times of the day with zeros are hours.
    np.testing.assert_allclose(read(["58:30", "1:02:45"] * 40), [0.975, 1.0 + 2.75 / 60] * 40)
    np.testing.assert_allclose(read(["7:30", "08:15:00"] * 40), [7.5, 8.25] * 40)
    np.testing.assert_allclose(read(["7:30", "08:15:36"] * 40), [7.5, 8.26] * 40)
    times = read(["12:10", "9:45", "1:02:30"] * 40)
    np.testing.assert_allclose(3600 * times, [730, 585, 3750] * 40)
    np.testing.assert_allclose(read(["2y", "6m", "18m"] * 40), [2, 0.5, 1.5] * 40)
    np.testing.assert_allclose(read(["15/20", "8/10", "1/2"] * 40), [0.75, 0.8, 0.5] * 40)
    np.testing.assert_allclose(read(["4,5 sur 5", "3/5", "2,0 sur 5", "5"] * 40), [4.5, 3, 2, 5] * 40)
    # These are hours and minutes.
    np.testing.assert_allclose(read(["0:45:10", "2:30", "3:10"] * 40)[1:3], [2.5, 3 + 1 / 6])
    # Ages are no months.
    np.testing.assert_allclose(read(["5 years", "3 years", "80", "60"] * 40), [5, 3, 80, 60] * 40)
    np.testing.assert_allclose(read([*["1,200 km", "1,500 km"] * 60, "3", "8"])[:2], [1200, 1500])
    np.testing.assert_allclose(read(["1013 hPa", "980 mbar"] * 40), [1013, 980] * 40)
    np.testing.assert_allclose(read(["6 900 zł", "5 000,50 PLN", "86 złotych"] * 40), [6900, 5000.5, 86] * 40)
    # In German, j are years.
    assert column(["45 j", "3 mon", "12 j"] * 40).role == "category"
    assert column(["2 ans", "6 mois"] * 40).note == "'2 ans' is read as 2 (unit: year)"
    mixed = [f"{i} {'€' if i % 3 else '$'}" for i in range(N)]
    told = r"numbers in 'eur', but 134 cells of 400 do not fit.*--numbers x .*--exclude x"
    with pytest.raises(TableError, match=told):
        column(mixed)


@pytest.mark.parametrize(
    ("words", "cell"),
    [
        (["1,5", "1.5", "2.25", "7,75"], "'1,5' in data row 1"), (["25%", "0.3", "12%", "0.75"], "'0.3' in data row 2"),
        (["5 km", "3 kg", "2 km", "2 km"], "'3 kg' in data row 2"), (["$5", "$7", "9 €", "$11"], "'9 €' in data row 3"),
        (["7/10", "8/10", "7", "3/10"], "'7' in data row 3"), (["1.7m", "1.6m", "90k", "1.8m"], "'90k' in data row 3"),
        (["1.7 m", "1.6 m", "170", "1.8 m"], "'170' in data row 3"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("many", [False, True])
def test_numbers_that_do_not_go_together_are_an_error(words, cell, many):
    # A column of many different values has them in its last digit.
    words = [
        word.replace("5", f"5{i}" if "5" in word else "5") if many else word
        for i in range(100)
        for word in words
    ]
    with pytest.raises(
        TableError, match=r"'x' holds numbers.*, but \d+ cells of 400 do not fit.*--numbers x"
    ) as error:
        column(words)
    assert many or cell in str(error.value)
    assert column(words, numbers=["x"]).odd.endswith("count as missing")


def test_percentages_among_many_shares_are_an_error():
    shares = [f"{i / 30:.2f}%" if i % 10 == 0 else f"{i / 3001:.5f}" for i in range(1, 3001)]
    with pytest.raises(TableError, match="'x' holds numbers in '%', but 2,700 cells of 3,000 do not fit"):
        column(shares)


@pytest.mark.parametrize(
    ("code", "numbers", "is_told"),
    [
        (999, range(18, 91), True), (999.9, range(18, 91), True), (-9, range(18, 91), True),
        (-99, [0.5, 2.25, 8.5], True), (9999, [1, 2, 3], True), (9999999, [1, 2, 3], True),
        (9, [1, 2], True), (-1, range(0, 50), True), (99, range(18, 91), False), (-1, [0, 1], False),
        (9, range(1, 6), True), (9, range(1, 9), False), (-9, range(-20, 20), False), (500, range(18, 91), False),
    ],
)  # fmt: skip
def test_repeated_numbers_far_from_all_others_may_be_missing_values(code, numbers, is_told):
    cells = [*[code] * 5, *(list(numbers) * N)[: N - 5]]
    frame = pd.DataFrame({"sex": ["f", "m"] * (N // 2), "x": cells, "y": np.arange(N) / 7})
    first = (decide(frame, ["sex"]).notes or [""])[0]
    note = f"x: {code} occurs in 5 cells, far from all other numbers; if this stands for missing values"
    assert first.startswith(note) == is_told


def test_sensitive_numbers_with_units_are_cut_into_ranges():
    pay = np.random.default_rng(0).integers(900, 9000, N)
    frame = pd.DataFrame({"pay": [f"€ {value:,}" for value in pay], "x": np.arange(N) % 7 / 7})
    with pytest.raises(TableError, match=r"'pay' holds \d+ different numbers, .* --bins 4"):
        decide(frame, ["pay"])
    groups = decide(frame, ["pay"], bins=2).preparation.groups(frame)["pay"]
    assert (groups.str.startswith("below") == (pay < np.quantile(pay, 0.5, method="higher"))).all()


def test_bins_cut_all_columns_of_many_numbers():
    frame = pd.DataFrame({"age": np.arange(N) % 91, "race": np.arange(N) % 9 + 1, "x": np.arange(N) / 7})
    found = decide(frame, ["age", "race"], bins=4)
    assert found.preparation.groups(frame).nunique().tolist() == [4, 9]
    codes = decide(frame, ["age"], asked=Asked(categories=["age"])).preparation
    assert codes.groups(frame)["age"].nunique() == 91
    frame["race"] = frame["race"].astype(str).where(frame.index % 12 > 0, "old")
    with pytest.raises(TableError, match=r"--bins: race: 34 cells such as 'old' .*--numbers race takes"):
        decide(frame, ["race"], bins=4)
    frame["age"] = frame["age"].astype(str).where(frame.index % 12 > 0, "see file")
    for bins in (None, 4):
        with pytest.raises(TableError, match=r"'age' holds numbers, but 34 cells .*--numbers age"):
            decide(frame, ["age"], bins=bins)
    odd = decide(frame, ["age", "race"], bins=4, asked=Asked(numbers=["age", "race"]))
    assert odd.preparation.groups(frame).nunique(dropna=False).tolist() == [5, 10]
    assert odd.notes[0] == "age: 34 cells ('see file') count as missing"


def test_a_few_odd_cells_are_missing_and_many_are_an_error():
    ages = [str(age) for age in np.random.default_rng(0).integers(18, 90, N)]
    ages[3], ages[7], ages[11] = "unknown", ".", "about forty"
    found = read(ages)
    assert found.index[found.isna()].tolist() == [3, 7, 11]
    assert column(ages).odd == "3 cells ('unknown', '.', 'about forty') count as missing"
    # Words for missing cells are no guess, however many they are.
    assert column([*ages[:200], *["k.A."] * 600]).role == "number"
    strange = [*ages[:360], *(f"some {i}" for i in range(40))]
    told = r"41 cells of 400 do not fit.*'about forty' in data row 12\. Fix: --numbers x"
    with pytest.raises(TableError, match=told):
        column(strange)
    assert read(strange, numbers=["x"]).isna().sum() == 43
    assert column(strange, categories=["x"]).role == "category"
    with pytest.raises(TableError, match="'x' holds numbers in 'usd', but 3 cells of 40 do not fit"):
        column([f"${4_000 + 7 * i:,}" if i > 2 else "ask" for i in range(40)])
    for texts in (["12", "15", "see note", *[None] * 197], [f"{i}{'A' * (i % 4 < 1)}" for i in range(40)]):
        assert column(texts).role == "identifier"


def test_few_numbers_of_another_size_than_those_with_a_unit_are_missing():
    heights = [f"{height / 100} m" for height in np.random.default_rng(0).integers(150, 200, N)]
    heights[7] = "172"
    assert column(heights).odd == "1 cell ('172' in data row 8) counts as missing"
    assert read(heights).isna().sum() == 1
    assert read(["12 kg", "0", "9", "800 g"] * 100)[:4].tolist() == [12, 0, 9, 0.8]


def test_one_cell_does_not_state_the_unit_of_many_numbers():
    rare = {"weight_kg": "154 lb", "height": "5 ft 9", "age": "6 months", "temp (°C)": "98.6 °F"}
    # The name of a column may state the unit, and years, shares and money need none.
    kept = {"kg": "3 kg", "temp_c": "3 °C", "Size, m²": "3 m2", "Age": "3 y", "rate": "3 %", "pay": "£3"}
    kept |= {"weightKg": "3 kg", "area_sq_ft": "3 sq ft", "AreaM2": "3 m2", "Speed (km/h)": "3 km/h"}
    for name, cell in (rare | kept).items():
        found = read([*["7", "12"] * 50, cell], name).iloc[-1]
        assert np.isnan(found) if name in rare else found == 3, name
    assert read([*["0"] * 99, "3 mm"]).iloc[-1] == 3
    assert read([*["7", "12"] * 46, *["3 kg"] * 4, *["heavy"] * 4]).isna().sum() == 8


def test_words_that_may_mean_zero_and_errors_of_spreadsheets_are_missing():
    counts = [*["1", "2", "4", "7"] * 99, "keine", "#NV", "#¡DIV/0!", "(leer)", "\\N"]
    told = "5 cells ('keine', '#NV', '#¡DIV/0!' and 2 more) count as missing; if 'keine' means 0, write 0"
    assert column(counts).odd.startswith(told)
    assert column(["$ 1,200.00", "$ -", "$ 3,400.50"] * 40).odd.endswith(
        "if '$ -' means 0, write 0 in the table"
    )
    assert column([" ", "29.85", "1889.5"] * 40).odd == "40 cells ('') count as missing"


def test_limits_that_would_be_one_number_are_categories():
    limits = ["<=50K", ">50K", "k.A."] * 50
    assert column(limits).note == "all would be the number 50000, so they are categories"
    assert column(limits).role == "category" and column(limits, numbers=["x"]).role == "number"
    assert column(["100%", "100 %", "k.A."] * 50).role == "number"


def test_groups_that_seem_to_be_missing_values_are_named():
    frame = pd.DataFrame({"sex": ["f", "m", "k. A.", "f"] * (N // 4), "x": np.arange(N) / 7})
    note = "sex: missing values seem to be groups with bounds of their own ('k. A.'); empty these cells in the table"
    assert any(of.startswith(note) for of in decide(frame, ["sex"]).notes)
    frame.loc[2::4, "sex"] = np.nan
    assert not any("seem" in note for note in decide(frame, ["sex"], missing="group").notes)


def test_an_ordered_categorical_is_a_scale():
    cells = pd.Categorical(["mid", "lo", "hi"] * 50, ["lo", "mid", "hi"], ordered=True)
    np.testing.assert_array_equal(read(cells), [1, 0, 2] * 50)
    asked = pd.Categorical(["low", "refused", "high"] * 50, ["low", "high", "refused"], ordered=True)
    assert column(asked).reading["levels"] == ["low", "high"] and "'refused'" in column(asked).odd
    stated = pd.Categorical(["none", "a bit", "a lot"] * 50, ["none", "a bit", "a lot"], ordered=True)
    np.testing.assert_array_equal(read(stated), [0, 1, 2] * 50)
    odd = column(["none", "small", "medium", "large"] * 50).odd
    assert odd.endswith("if 'none' is a step, --ordered states it")
    assert column(["no", "none", "mild", "severe"] * 50).reading["levels"] == ["no", "mild", "severe"]


def test_all_unclear_columns_are_named_at_once():
    frame = pd.DataFrame({name: ["25%", "0.3", "12 %", "0.75"] * 100 for name in "ab"})
    with pytest.raises(TableError, match=r"(?s)'a' holds numbers.*\n'b' holds numbers"):
        understand(frame)


def test_the_first_note_names_odd_cells_and_rows_with_them_can_be_left_out():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], N), "age": rng.integers(18, 90, N).astype(str)})
    frame = frame.astype(object)
    frame.loc[5, "age"] = "unknown"
    found = decide(frame, ["sex"], missing="drop")
    assert found.notes[0] == "age: 1 cell ('unknown' in data row 6) counts as missing"
    groups = found.preparation.groups(frame)
    assert found.preparation.reasons(frame, groups)[5] == "no value in age"


@pytest.mark.parametrize(
    ("cells", "name", "role"),
    [
        ([f"{i:05d}" for i in range(501, 501 + 20)] * 20, "x", "category"),
        ([f"{i * 7 % 100000:05d}" for i in range(N)], "x", "identifier"),
        ([10115, 20095, 80331, 50667] * 100, "plz", "category"),
        (["945xx", "021xx", "606xx", "606xx"] * 100, "zip", "category"),
        ([f"0{150 + i % 30}/{1000000 + 7 * i}" for i in range(N)], "x", "identifier"),
        ([f"+49 170 {1000000 + 7 * i}" for i in range(N)], "x", "identifier"),
        ([f"+48 705 949 {100 + i}" for i in range(N)], "phone", "identifier"),
        ([51_000_017 + 3_141 * (i * i % 397) for i in range(N)], "x", "category"),
        ([1990 + i % 30 for i in range(N)], "year", "category"),
        ([1990 + i % 30 for i in range(N)], "Jahr", "category"),
        ([1930 + i % 70 for i in range(N)], "birth_year", "number"),
        ([1930 + i % 45 for i in range(N)], "yearBuilt", "number"),
        ([f"{12345678 + 977 * i}{'ABC'[i % 3]}" for i in range(N)], "dni", "identifier"),
        ([f"{i % 3}.{i % 7}.{i % 5}" for i in range(N)], "version", "category"),
        ([f"{i % 28 + 1:02d}.{i % 12 + 1}.2020" for i in range(N)], "x", "left out"),
        ([f"{i % 28 + 1}. {i % 12 + 1}. 2020" for i in range(N)], "x", "left out"),
        ([20200101 + i % 28 for i in range(N)], "x", "left out"),
        ([f"12 Jan {2000 + i % 20}" for i in range(N)], "x", "left out"),
        ([f"2020-{i % 12 + 1:02d}" for i in range(N)], "x", "left out"),
        ([f"20{i:02d}{'/-'[i > 11]}{i + 1:02d}" for i in range(4, 24)] * (N // 20), "season", "category"),
        ([f"{i % 12 + 1:02d}/{1950 + i % 60}" for i in range(N)], "x", "left out"),
        ([f"{1990 + i % 30}年{i % 12 + 1}月{i % 28 + 1}日" for i in range(N)], "x", "left out"),
        ([200101 + i % 28 + 10000 * (i % 3) for i in range(N)], "x", "left out"),
        ([100 * (2000 + i % 20) + i % 12 + 1 for i in range(N)], "x", "left out"),
        ([202001 + i % 12 for i in range(N)], "Monat", "left out"),
        ([20200105133000 + i % 60 for i in range(N)], "x", "left out"),
        ([43831 + i * i % 97 for i in range(N)], "Rechnungsdatum", "left out"),
        ([43831 + i * i % 97 for i in range(N)], "sales to date", "number"),
        ([f"{i % 12 + 1:02d}.{2018 + i % 6}" for i in range(N)], "x", "left out"),
        ([f"{2018 + i % 6}/{i % 12 + 1:02d}" for i in range(N)], "x", "left out"),
        ([f"1.{1900 + i % 200}" for i in range(N)], "x", "number"),
        ([101 + i % 28 for i in range(N)], "x", "number"),
        ([f"{100 + i % 80}/{60 + i % 49}" for i in range(N)], "x", "left out"),
        ([100_000 + 1000 * (i % 77) for i in range(N)], "price", "number"),
        ((np.random.default_rng(0).permutation(80_000)[:N] + 12_000).tolist(), "salary", "number"),
        (np.sort(np.random.default_rng(0).permutation(80_000)[:N] + 12_000).tolist(), "salary", "number"),
        ((np.random.default_rng(0).integers(1, 9, N).cumsum() + 7_000).tolist(), "order", "identifier"),
        ([i % 7 for i in range(N)], "phone_calls", "number"), ([f"FR-{i}" for i in range(N)], "x", "identifier"),
        ([f"{i}A" for i in range(N)], "x", "identifier"), ([f"€ {17 * i + i % 5}" for i in range(N)], "x", "number"),
        (["10", "10A", "12", "12B"] * 100, "flat", "category"), (["12e", "14", "3e", "7d"] * 99, "flat", "category"),
        (["75", "92", "2A", "13"] * 100, "département", "category"),
        ([i % 12 + 1 for i in range(N)], "código de región", "category"),
        ([1_700_000_000 + 60 * (i // 3) for i in range(N)], "timestamp", "left out"),
        ([f"{i % 21}-{i % 19}" for i in range(N)], "record", "left out"),
        ([f"{600 + i} {964 + i % 30} {776 - i}" for i in range(N)], "telefono", "identifier"),
        ([f"{1_000_000 + 7919 * i:,}" for i in range(N)], "population", "number"),
        ([f"{['main', 'set', 'deck'][i % 3]}-{i % 12 + 1:02d}" for i in range(N)], "x", "category"),
        ([f"{i % 28 + 1}th March {2000 + i % 20}" for i in range(N)], "x", "left out"),
        ([f"{i % 28 + 1} de mayo de {2000 + i % 20}" for i in range(N)], "x", "left out"),
        ([f"{i % 28 + 1} мая {2000 + i % 20} г." for i in range(N)], "x", "left out"),
        ([f"who came for {i} days" if i % 2 else "none" for i in range(N)], "x", "left out"),
        ([["Mar-24", "Apr-23", "Okt-22", "k.A."][i % 4] for i in range(N)], "x", "left out"),
        (["7 von 10 Punkten", "10 Punkte"] * 100, "x", "category"), (["SEP-01", "SEP-02"] * 100, "x", "category"),
    ],
)  # fmt: skip
def test_codes_are_not_measured(cells, name, role):
    found = column(cells, name)
    assert found.role == role, found
    if "--numbers" in found.note:
        assert column(cells, name, numbers=[name]).role == "number"
    assert name != "phone" or "--numbers" not in found.note


def test_names_of_identifiers_and_counts():
    cells = np.random.default_rng(0).permutation(900_000)[:N] + 100_000
    ids = "userid PassengerId kundennr policyno order_number klantnummer num_client ticket id_cliente Lfd.Nr. InvoiceNo"
    counts = "number_of_rooms num_clients total_number paid humid psnr casino wavenumber número koi_model_snr"
    counts += " followers_num mean_number Reynolds_number avg_ticket id_02 num_employee max_temp_no2 childrenNo salesNo"
    for name in [*ids.split(), "numéro de dossier", *counts.split()]:
        found, is_id = column(cells, name), name not in counts.split()
        assert (found.role == "identifier") == found.note.endswith(" measures them") == is_id, name


def test_a_whole_number_beside_points_of_five_is_none():
    with pytest.raises(TableError, match="the first is '3' in data row 3"):
        column(["4/5", "2/5", "3", "1/5"] * 100, "x")


def test_a_letter_behind_a_whole_number_is_no_billion():
    houses = [*(str(i % 90 + 1) for i in range(N - 8)), *["12B"] * 8]
    assert column(houses).odd.startswith("8 cells ('12B') count as missing")
    views = ["1.2M", "3M", "450K", "700", "2.5B", "$2B", "41", "8"] * 50
    assert read(views)[:6].tolist() == [1.2e6, 3e6, 450e3, 700, 2.5e9, 2e9]
    assert read(["5K", "3M", "2K", "9"] * 100)[:4].tolist() == [5e3, 3e6, 2e3, 9]


def test_truth_values_in_several_spellings():
    words = ["yes", "No", "Y", "1", "ja", "0", "unknown"]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"ill": rng.choice(words, N), "x": rng.normal(size=N), "in": rng.choice(words[:6], N)}
    )
    found = decide(frame, ["in"])
    assert encoded_names(found.preparation.columns) == ["x", "ill_no", "ill_yes"]
    assert set(found.preparation.groups(frame)["in"]) == {"yes", "no"}
    X = found.preparation.transform(frame)
    yes = frame["ill"].isin(["yes", "Y", "1", "ja"])
    np.testing.assert_array_equal(X[:, 2][frame["ill"] != "unknown"], yes[frame["ill"] != "unknown"])
    # Two spellings are two categories anyway, and these are points of the compass.
    assert not are_truths(["yes", "no", "unknown"]) and not are_truths(["N", "S", "O"])


@pytest.mark.parametrize(
    "scale",
    [
        ["low", "medium", "high"], ["never", "rarely", "sometimes", "often", "always"], ["A", "B", "C", "D", "E"],
        ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"], ["XS", "S", "M", "L"],
        ["nie", "selten", "oft", "immer"], ["faible", "moyen", "élevé"], ["bajo", "medio", "alto"],
        ["18-25", "26-35", "36-50", "51+"], ["under 18", "18 to 25", "26–64", "65 and over"],
        ["unter 18", "18 bis 25", "26 bis 65", "über 65"], ["<10k", "10k-20k", "20k-50k", ">50k"],
        ["$0-$10,000", "$10,001-$20,000", "$20,001+"], ["1.000-2.000 €", "2.001-3.000 €", "über 3.000 €"],
        ["1 - none", "2 - some", "3 - all"], ["1 (bad)", "2", "3", "4 (good)"], ["Stage I", "Stage II", "Stage IV"],
        ["low (<18,5)", "normal (18,5-24,9)", "more (25-29,9)", "high (30+)"],
        ["unter 18", "18-65", "über 65"], ["0", "1-2", "3+"], ["<1000 €", "1000-2000 €", ">2000 €"],
        ["900 - 1.000", "1.000 - 1.500", ">1.500"], ["unter 500 €", "500 - 1.000 €", "1.000 - 2.000 €"],
        ["t/m 17", "18 t/m 34", "35 t/m 64", "65 en ouder"], ["<15 min", "15-30 min", "30-60 min", "1 hr+"],
        ["とても不満", "不満", "普通", "満足"], ["Helt uenig", "Delvist uenig", "Delvist enig", "Helt enig"],
        ["A+", "A", "A-", "B+", "B"], ["Level 1", "Level 2", "Level 10"], ["6-", "6", "7-", "7", "7+", "10"],
        ["I", "II", "III", "IV"], ["★", "★★", "★★★"], ["0", "3", "3+", "4-", "4"], ["1+", "1", "1-", "2+", "3"],
        ["1", "2-", "3+", "4"], ["légère", "modérée", "sévère"], ["scarso", "sufficiente", "discreto"],
        ["stimme nicht zu", "stimme eher nicht zu", "teils/teils", "stimme eher zu", "stimme voll zu"],
        ["pas d'accord", "plutôt pas d'accord", "plutôt d'accord", "d'accord"],
        ["dissatisfied", "somewhat dissatisfied", "somewhat satisfied", "satisfied"],
        ["nada satisfecho", "poco satisfecho", "muy satisfecho"], ["I", "IIA", "IIB", "IV"],
        ["dissatisfied", "neither satisfied nor dissatisfied", "satisfied"], ["unlikely", "rather likely", "likely"],
        ["6-12 months", "1-2 years", "3-5 years"], ["100-500 m", "1-5 km", "5-10 km"], ["NYHA I", "NYHA II", "NYHA IV"],
        ["18-24 years", "25-34 years", "45+"], ["1-4 h", "5-8 h", "9-12"], ["do 9 zł", "od 9 do 20 zł", "20-50 zł"],
        ["(18,25]", "(25,35]", "(35,50]"], ["[0, 1)", "[1, 2)", "[2, 10)"], ["A", "B", "C", "D", "F"],
        ["befriedigend (3)", "gut (2)", "sehr gut (1)"], ["péssimo", "regular", "bom", "ótimo"],
        ["neg", "trace", "1+", "3+"], ["★★☆☆☆", "★★★☆☆", "★★★★★"], ["3年未満", "3年以上5年未満", "5-9年", "10年以上"],
        ["None (0)", "mild (1)", "severe (2)"], ["keine", "leicht", "schwer"], ["-", "+", "++"],
        ["low", "med", "high", "vhigh"], ["easy", "difficult", "very difficult"], ["worse", "same", "better"],
        ["Freshman", "Sophomore", "Junior", "Senior"], ["podstawowe", "zawodowe", "średnie", "wyższe"],
        ["mycket missnöjd", "missnöjd", "varken eller", "nöjd", "mycket nöjd"], ["leichte", "mittlere", "starke"],
        ["nunca", "mensalmente", "diariamente"], ["pessima", "discreta", "buona", "ottima"], ["A++", "A+", "A", "G"],
    ],
)  # fmt: skip
def test_scales_and_ranges_are_ordered(scale):
    shuffled = np.random.default_rng(0).permutation(np.arange(N) % len(scale))
    cells = [scale[i] for i in shuffled]
    assert steps(set(cells)) == scale
    np.testing.assert_array_equal(read(cells), shuffled)
    assert column(cells).note == f"a scale: {' < '.join(scale)}"


@pytest.mark.parametrize(
    "words",
    [
        ["N", "S", "E", "W"], ["1", "2", "3+"], ["1", "11", "111"], ["red", "green", "blue"], ["a", "b", "c"],
        ["<=50K", ">50K"], ["0-", "0+", "A-", "A+", "B+"], ["cold", "hot", "flu"], ["555-1234", "555-2345", "556-11"],
        ["C", "C++", "D"], ["1", "2", "2+", "2++"], ["Normal", "Normal Weight", "Overweight", "Obese"],
    ],
)  # fmt: skip
def test_other_words_are_not_ordered(words):
    assert steps(words) == []


def test_a_scale_that_is_stated():
    cells = ["raw", "medium rare", "done"] * 50
    assert column(cells).role == "category"
    np.testing.assert_array_equal(read(cells, ordered={"x": ["raw", "Medium rare", "done"]}), [0, 1, 2] * 50)
    with pytest.raises(TableError, match="'x' has 'medium rare', which is not among its steps raw, done"):
        column(cells, ordered={"x": ["raw", "done"]})


def test_notes_name_columns_that_may_be_something_else():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "month": rng.integers(1, 13, N),
            "manager id": rng.integers(1, 21, N),
            "floor": rng.integers(1, 21, N),
            "schoolID": rng.integers(1, 200, N),
            "Poids (kg)": [f"{weight} kg" for weight in rng.integers(50, 99, N)],
            "fare": rng.choice(["1", "2", "3", "free"], N),
            "town": rng.choice(["Köln", "köln"], N),
        }
    )
    notes = " | ".join(decide(frame, []).notes)
    assert (
        "month, manager id, schoolID: taken as numbers; if these whole" in notes and "--weight" not in notes
    )
    assert "cells such as 'free' are no numbers in one unit, so all are categories; --numbers fare" in notes
    assert "town: 'Köln'" in notes and "differ only by case or blanks, and count as 2 values" in notes


def test_a_cell_that_makes_up_the_variance_is_named_with_the_remedies():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], N), "pay": rng.normal(50, 10, N), "age": rng.normal(size=N)}
    )
    frame.loc[16, "pay"] = 1e6
    note = decide(frame, ["sex"]).notes[0]
    assert note.startswith("pay: 1,000,000 in data row 17 makes up 100 % of its variance")
    for option in ("log", "clip"):
        found = decide(frame, ["sex"], asked=Asked(**{option: ["pay"]}))
        spread = np.abs(found.preparation.transform(frame)[:, 0])
        assert np.sort(spread)[-2] > 0.05  # the other rows do not look alike
    assert not any("variance" in note for note in found.notes)
    low, high = np.quantile(frame["pay"], [0.01, 0.99])
    assert found.columns[0].reading["clip"] == pytest.approx([low, high])
    # A note on logarithms has the numbers of the table, and other remedies.
    for far, note in ({1e200: "1e+200 in data row 1 makes up", 99999: "99999 occurs in 2 cells"}).items():
        frame.loc[:1, "pay"] = [far, 50 if far > 1e9 else far]
        found = decide(frame.drop(16), ["sex"], asked=Asked(log=["pay"])).notes[0]
        assert found.startswith(f"pay: {note}") and "--log" not in found
