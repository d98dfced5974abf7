import re

import numpy as np
import pandas as pd
import pytest
from commands import refused, run, told

from fairclust.cli.options import COMMANDS


def test_the_command_gives_the_labels_of_the_class(people, tmp_path, capsys):
    from fairclust.methods import VariationalFairKMeans

    out = tmp_path / "labels.csv"
    options = ["--sensitive", "sex", "--method", "VariationalFairKMeans", "--n-clusters", 3, "--seed", 4]
    options += ["--set", "lam=20", "--scale", "none", "--features", "age,income", "--out", out]
    run(capsys, "fit", people, *options)
    frame = pd.read_csv(people)
    model = VariationalFairKMeans(3, lam=20, random_state=4)
    expected = model.fit_predict(frame[["age", "income"]].to_numpy(), sensitive_features=frame.sex)
    np.testing.assert_array_equal(pd.read_csv(out).cluster, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--sensitive": "sexx"}, "did you mean 'sex'"),
        ({"--method": "vcf"}, "did you mean 'vfc'"),
        ({"--set": "lamm=3"}, "did you mean 'lam'"),
        ({"--set": "lam"}, "expected NAME=VALUE"),
        ({"--set": "lam=-1"}, "lam"),
        ({"--set": "n_clusters=4"}, "n_clusters is set twice"),
        ({"--method": "price", "--set": "min_balance=0.4", "--min-balance": "0.5"}, "is set twice"),
        ({"--tolerance": "0.1"}, "no parameter 'tolerance'. Fix: leave it out, or fit by --method price"),
        ({"--equal-sizes": "--json"}, "--equal-sizes: VariationalFairKMeans has no bounds on sizes"),
        ({"--n-clusters": "100000"}, "more than n_samples"),
        ({"--features": "name"}, "no column is left to cluster by (name: constant)"),
        ({"--features": "age,sex"}, "leave it out of one of the two options"),
        ({"--features": "age", "--log": "income"}, "--log: 'income' is not among --features. Fix: name it"),
        ({"--categories": "age", "--numbers": "age"}, "--numbers: 'age' is named by --categories too"),
        ({"--numbers": "age", "--ordered": "age=1,2"}, "--numbers: 'age' is named by --ordered too"),
        ({"--clip": "sex"}, "--clip: 'sex' is named by --sensitive too. Fix: leave it out of one of the two"),
        ({"--exclude": "agge"}, "did you mean 'age'"),
        ({"--delimiter": ";"}, "--delimiter"),
        ({"--delimiter": "ab"}, "is not one ASCII character"),
        ({"--encoding": "klingon"}, "unknown encoding"),
        ({"--seed": "4", "--set": "random_state=9"}, "random_state"),
    ],
)
def test_errors_of_fit(people, capsys, change, message):
    options = {"--sensitive": "sex", "--method": "vfc", "--n-clusters": "3"} | change
    err = refused(run(capsys, "fit", people, *(part for item in options.items() for part in item)))
    assert message in err


def test_a_table_that_is_not_there_or_has_one_group_is_refused(tmp_path, capsys):
    command = ("fit", tmp_path / "one.csv", "--sensitive", "sex", "--n-clusters", 2)
    assert "there is no file" in refused(run(capsys, *command))
    (tmp_path / "one.csv").write_text("# export\nsex,a\nf,1\nf,2\n,3\n")
    err = refused(run(capsys, *command))
    assert "has only the group 'f'" in err and "Fix: name another column by --sensitive" in err
    for name, is_misspelt in (("sexx", True), ("colour", False)):
        err = refused(run(capsys, *command[:3], name, *command[4:]))
        assert ("did you mean" in err) == is_misspelt != ("--header-row" in err)


def test_many_groups_are_printed_in_part(people, tmp_path, capsys):
    frame = pd.read_csv(people)
    frame["town"] = [f"town {i % 12}" for i in range(len(frame))]
    frame.to_csv(tmp_path / "towns.csv", index=False)
    _, text, _ = run(capsys, "fit", tmp_path / "towns.csv", "--sensitive", "town", "--n-clusters", 3)
    assert "12 groups" in text
    assert "4 others" in text


SEX = "asked: sex: "
ALL = "in every cluster, each group has"


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ("", f"{SEX}{ALL} its share of all rows (tolerance 0; --tolerance"),
        ("--tolerance 10%", f"{SEX}{ALL} at least 0.9 times and at most"),
        ("--min-balance 0.3", f"{SEX}for each row of the largest group, at least 0.3 rows of the"),
        ("--equal-sizes", "asked: clusters of equal size"),
        ("--set size_max=250", "asked: size_max=250"),
        ("--max-cost-increase 500%", "asked: the fairest clusters that cost at most 500.0 % more"),
        ("--method vfc", "asked: no bound; VariationalFairKMeans weighs fairness"),
        ("--method kmeans", "asked: no bound; k-means ignores the groups"),
    ],
)
def test_what_was_asked_and_what_was_got_comes_first(people, capsys, options, asked):
    text = told(run(capsys, "fit", people, "--sensitive", "sex", "--n-clusters", 3, *options.split()))
    got = "the largest" if "--method" in options else "met"
    lines = text.splitlines()
    assert lines[1].startswith(asked)
    answer = lines[2] if lines[2].startswith("got") else lines[3]
    assert answer.startswith(f"got: {got}") and "the largest difference is in cluster" in answer
    assert ("the budget of 500.0 % was not needed; exact shares cost" in text) == ("500%" in options)
    # A metric stands beside the best value that the data allow.
    groups = pd.read_csv(people).sex.value_counts()
    (balance,) = [line for line in lines if line.startswith("Balance  ")]
    assert balance.endswith(f"{groups.min() / groups.max():.4f}")
    if "--equal-sizes" in options:
        sizes = [int(of) for of in re.findall(r"^cluster \d+, (\d+) rows: ", text, re.MULTILINE)]
        assert max(sizes) - min(sizes) <= 1
    if "kmeans" not in options:
        assert re.search(r"^cost: [\d.]+ % (more|less) than k-means", text, re.MULTILINE)
        assert re.search(r"^who pays: a row of sex \w costs [\d.]+ % (more|less)", text, re.MULTILINE)
    assert not re.search(r"\d%", text.replace("--tolerance", ""))


@pytest.mark.parametrize("violation", [0.4, 0.0])
def test_a_cost_below_the_bound_is_never_printed_without_its_reason(violation):
    from fairclust.solvers.prices import certificate_text

    found = {"gap": 1e-5, "cost": 99.0, "lower_bound": 100.0, "violation": violation}
    line = certificate_text(found)
    assert line.startswith("with these centres, no labels within the bounds are more than 0.001 % cheaper")
    reason = "the labels miss the bounds by up to 0.4 rows" if violation else "of rounding errors"
    assert f"(cost 99.0, slightly below the bound 100.0 because {reason}); " in line
    assert line.endswith("other centres may be cheaper")
    line = certificate_text({**found, "cost": 101.0})
    assert "(cost 101.0, lower bound 100.0)" in line and "because" not in line


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--tolerance", "x", "--tolerance: 'x' is neither a number nor a percentage"),
        ("--max-cost-increase", "-5%", '"-0.05" for --max-cost-increase. Must be >= 0'),
        ("--seed", "3.5", "--seed: '3.5' is no whole number"),
        ("--bins", "2.5", "--bins: '2.5' is no whole number"),
        ("--tolerance", "--json", "--tolerance: needs a number, and --json follows"),
        ("--max-cost-increase", "inf%", "--max-cost-increase. Must be < inf"),
        ("--min-balance", "2", "--min-balance. Must be <= 1"),
        ("--out", "rows.xlsx", "The file is CSV. Fix: name it rows.csv"),
        ("--tolerence", "0.1", "Unknown option: --tolerence. Did you mean --tolerance?"),
        ("--max-cost-increase", "5", "5 would be 500 %. Fix: write 5%, or 500% if that is meant"),
    ],
)
def test_a_wrong_option_is_the_first_thing_that_is_said(people, capsys, option, value, message):
    err = refused(run(capsys, "fit", people, "--sensitive", "sex", "--n-clusters", 3, option, value))
    assert message in err.splitlines()[0] and err.splitlines()[1].endswith("--help` shows the options.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--n-clusters", 3], "TABLE is needed"),
        (["TABLE", "--n-clusters", 3], "--sensitive is needed"),
        (["TABLE", "--sensitive", "--n-clusters", 3], "Name at least one column"),
    ],
)
def test_what_is_missing_is_named(people, capsys, words, message):
    err = refused(run(capsys, "fit", *(people if word == "TABLE" else word for word in words)))
    assert message in err.splitlines()[0]


def test_what_was_asked_of_several_columns_and_of_sizes():
    from fairclust import PriceFairKMeans
    from fairclust.cli.results import asked

    # The default tolerance of 0 does not bound the other columns.
    for bounds in ({"tolerance": {"sex": 0.2, "age": None}}, {"min_balance": {"sex": 0.5}}):
        lines = asked(PriceFairKMeans(3, **bounds), ["sex", "age"])
        assert [line.partition(":")[0] for line in lines] == ["sex"]
    mixed = PriceFairKMeans(3, mean_tolerance={"age": 0.1}, max_gap={"sex": 0.2}, size_min=5)
    said = ["max_gap={'sex': 0.2}", "mean_tolerance={'age': 0.1}", "size_min=5"]
    assert asked(mixed, ["sex", "age"]) == said


@pytest.mark.parametrize(
    "command", ["", *(cls.__name__.lower() for group in COMMANDS.values() for cls in group)]
)
def test_the_help_fits_on_a_screen_and_that_with_all_options_has_more(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    words = [command] if command else []
    short, whole = (told(run(capsys, *words, option)).splitlines() for option in ("--help", "--help-all"))
    assert len(short) < 24 and max(map(len, short)) <= 80
    assert set(re.findall("--[a-z-]+", " ".join(short))) - {"--help-all"} <= set(
        re.findall("--[a-z-]+", " ".join(whole))
    )
    if command == "fit":
        assert "--scheduler ADDRESS" in " ".join(whole) and "--scheduler" not in " ".join(short)
