from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from a_paper import NAMES, material, reported
from frames import frame, starts

from fairclust.pipeline.papers import ClaimSpec
from fairclust.pipeline.reported import NO_VALUES as NOTHING
from fairclust.report.checks import claim_problems
from fairclust.report.claims import CLAIM_COLUMNS, check_claim, load_claims, make_claims
from fairclust.report.material import Material


def claim_of(check, options=None, metrics=("sse",), methods=("own", "rival"), **more):
    return ClaimSpec.model_validate(
        {
            **{"text": "So.", "check": check, "datasets": ["town"], "methods": list(methods)},
            **{"metrics": list(metrics), "options": options or {}, **more},
        }
    )


def verdict(check, data, **more):
    """Return the verdict on a claim about Town and the text with its numbers."""
    claim = claim_of(check, **more)
    assert not list(claim_problems("c", claim, list("1234")))
    first = check_claim(claim, data).iloc[0]
    return first.verdict, first.numbers


def judge(*args, **more):
    """Return the verdict alone."""
    return verdict(*args, **more)[0]


TURNED = ["rival", "own"]


def test_compare():
    data = material(starts("own", [90.0, 110.0]), starts("rival", [105.0, 107.0]))
    found, numbers = verdict("compare", data)
    assert found == "holds"
    assert "Own 100.0 ± 14.1, best 90.0" in numbers and "ratio 0.943, at most 1 asked" in numbers
    assert judge("compare", data, options={"factor": 0.9}) == "holds in part"  # only for its best start
    assert judge("compare", data, options={"factor": 0.8}) == "does not hold"
    assert judge("compare", data, methods=TURNED) == "does not hold"
    assert verdict("compare", data, methods=["own", "absent"]) == ("not tested", "absent is not in this run")
    assert judge("compare", data, metrics=["ncut"]) == "not tested"
    # What cannot be tested hides nothing of what was found.
    found, numbers = verdict("compare", data, methods=["rival", "own", "absent"])
    assert found == "does not hold" and numbers.endswith("; absent is not in this run")
    assert judge("compare", data, methods=TURNED, metrics=["ncut", "sse"]) == "does not hold"


def test_a_claim_is_tested_at_the_k_with_most_of_its_methods_in_its_sweep():
    own, rival = [*starts("own", [50.0], k=2)], starts("rival", [40.0], k=2)
    for sweep, other in (("", own), ("fig", [*own, *rival])):
        data = material(starts("own", [90.0], sweep=sweep), starts("rival", [100.0], sweep=sweep), other)
        found, numbers = verdict("compare", data, sweep=sweep)
        assert found == "holds" and "K = 2" not in numbers and "not in this run" not in numbers


def test_compare_metrics_that_should_be_high_and_negative_metrics():
    data = material(starts("own", [0.5, 0.5], "balance"), starts("rival", [0.4, 0.4], "balance"))
    assert judge("compare", data, metrics=["balance"]) == "holds"
    assert judge("compare", data, metrics=["balance"], options={"factor": 1.3}) == "does not hold"
    assert judge("compare", data, metrics=["balance"], options={"direction": "lower"}) == "does not hold"
    # For a negative value, ten per cent better means -11 and not -9.
    likely = material(starts("own", [-10.5] * 2, "nll"), starts("rival", [-10.0] * 2, "nll"))
    assert judge("compare", likely, metrics=["nll"], options={"factor": 0.9}) == "does not hold"
    assert judge("compare", likely, metrics=["nll"], options={"factor": 0.96}) == "holds"


def test_compare_several_metrics_and_another_data_set():
    data = material(
        starts("own", [1.0] * 2, awd=0.5),
        starts("rival", [2.0] * 2, awd=0.1),
        starts("rival", [0.5], dataset="city"),
    )
    assert judge("compare", data, metrics=["sse", "awd"]) == "holds in part"
    assert judge("compare", data, options={"other_dataset": "city"}) == "does not hold"


def tradeoffs(metric="fairness_error", **methods):
    """Return cells of methods from the cost and the fairness of their settings. Each setting has two starts."""
    return material(
        *(
            starts(method, np.full(2, cost, float), lam=lam, **{metric: fair})
            for method, settings in methods.items()
            for lam, (cost, fair) in enumerate(settings, 1)
        )
    )


@pytest.fixture
def fronts():
    return tradeoffs(own=[([78, 82], 0.5), (100, [0.01, 0.07])], rival=[(90, 0.5), (110, 0.05)])


def equal(level_from="", **options):
    """Return the options of a comparison at equal fairness error."""
    return {"equal": "fairness_error", **({"level_from": level_from} if level_from else {}), **options}


def test_compare_at_equal_fairness(fronts):
    # Own costs 100 at an error of 0.04 and 80 at 0.5, the rival 110 at 0.05 and 90 at 0.5.
    found, numbers = verdict("compare", fronts, options=equal("both"))
    assert found == "holds" and "at fairness error 0.0500 (best: Own 0.0400, Rival 0.0500), SSE" in numbers
    assert "Own 99.6" in numbers and "Rival 110.0" in numbers  # between the settings
    assert judge("compare", fronts, options=equal("both", factor=0.9)) == "does not hold"
    assert judge("compare", fronts, options=equal("both"), methods=TURNED) == "does not hold"


def test_the_levels_that_both_methods_reach(fronts):
    found, numbers = verdict("compare", fronts, options=equal("front"))
    assert found == "holds" and "at 9 levels of fairness error from 0.0500 to 0.5000" in numbers
    assert "ratio 0.889 to 0.905, at most 1 asked, true at 9" in numbers
    assert judge("compare", fronts, options=equal("front"), methods=TURNED) == "does not hold"
    # Only the best start satisfies this, at some of the levels.
    assert judge("compare", fronts, options=equal("front", factor=0.88)) == "holds in part"
    # If one level cannot be tested, the others still count.
    cells = fronts.cells.assign(balance=fronts.cells.sse.where(fronts.cells.lam == 1))
    asked = {"metrics": ["balance"], "options": equal("front", order="sse", direction="lower")}
    found, numbers = verdict("compare", replace(fronts, cells=cells), **asked)
    assert found == "holds" and numbers.endswith("true at 1; not tested at others: no value of Balance")


def test_a_level_that_the_claim_states(fronts):
    at = equal("stated", level=0.3)
    found, numbers = verdict("compare", fronts, options=at)
    assert found == "holds" and "at fairness error 0.3000" in numbers
    assert judge("compare", fronts, options=equal("stated", level=0.045), methods=TURNED) == "does not hold"


def test_a_rival_that_reaches_further(fronts):
    # Own is cheaper at every error that both reach. If Own is cut off at 0.5, only the rival is fair.
    error, own = fronts.cells.fairness_error, fronts.cells.method == "own"
    unfair = replace(fronts, cells=fronts.cells.assign(fairness_error=error.where(~own, error + 0.2)))
    assert judge("compare", unfair, options=equal("front")) == "holds"
    for levels in ("front", "both"):
        found, numbers = verdict("compare", unfair, options=equal(levels, whole_range=True))
        assert found == "holds in part" and "beyond that, only Rival has settings" in numbers
    assert judge("compare", fronts, options=equal("front", whole_range=True)) == "holds"


def test_differences_instead_of_ratios():
    # A ratio of a negative to a positive value says nothing.
    data = material(starts("own", [-0.8, -0.9], "nll"), starts("rival", [1.4, 1.5], "nll"))
    for margin, found in ((2.0, "holds"), (2.35, "does not hold")):
        said, numbers = verdict("compare", data, metrics=["nll"], options={"margin": margin})
        assert said == found and f"difference -2.300, at most {-margin:g} asked" in numbers
    high = material(starts("own", [0.8] * 2, "balance"), starts("rival", [0.5] * 2, "balance"))
    for margin, found in ((0.2, "holds"), (0.4, "does not hold")):
        assert judge("compare", high, metrics=["balance"], options={"margin": margin}) == found


def test_numbers_that_say_nothing_about_the_claim():
    data = material(starts("own", [1.0], "seconds"), starts("rival", [9.0], "seconds"))
    asked = {"metrics": ["seconds"], "options": {"not_comparable": "times of another machine"}}
    found, numbers = verdict("compare", data, **asked)
    assert found == "not comparable" and numbers.startswith("times of another machine: ")
    verdicts = check_claim(claim_of("compare", **asked, datasets=["town", "city"]), data).verdict
    assert verdicts.tolist() == ["not comparable", "not comparable", "not tested"]


def test_a_fairer_rival_is_no_dearer_rival():
    # SFC has fair clusterings only. That they cost more than an unfair one says nothing.
    data = tradeoffs(own=[(80, 0.5)], rival=[(110, 0.05)])
    found, numbers = verdict("compare", data, options=equal("both"))
    assert found == "not tested" and "every setting of Rival is better, at least 0.0500" in numbers
    # If the fairer one is also cheaper, it does.
    assert judge("compare", data, options=equal("both"), methods=TURNED) == "not tested"
    cheap = tradeoffs(own=[(80, 0.5)], rival=[(70, 0.05)])
    assert judge("compare", cheap, options=equal("both"), methods=TURNED) == "holds"
    # Nor does it if the rival has an unfair setting without a cost, or its best start is cheaper.
    for rival in ([(110, 0.05), (np.nan, 0.5)], [([70, 110], 0.05)]):
        data = tradeoffs(own=[(80, 0.5)], rival=rival)
        assert judge("compare", data, options=equal("both"), methods=TURNED) == "not tested"


def test_compare_with_several_rivals_at_equal_cost():
    options = {"equal": "sse", "level_from": "front"}
    asked = {"methods": ["own", "rival", "plain"], "metrics": ["fairness_ratio"], "options": options}
    rivals = {"rival": [(100, 0.1), (200, 0.5)], "plain": [(100, 0.2), (200, 0.9)]}

    def of_own(*ratios):
        own = zip((100, 200, 300), ratios, strict=False)
        return judge("compare", tradeoffs("fairness_ratio", own=own, **rivals), **asked)

    assert of_own(0.3, 0.95) == "holds"
    # One rival is fairer at the same cost, although the first method is the fairest at a higher cost.
    assert of_own(0.15, 0.6, 1.0) == "holds in part"
    assert of_own(0.0, 0.1, 1.0) == "does not hold"


def test_clusters_at_equal_fairness_are_those_of_the_cheapest_setting():
    data = material(
        starts("own", [100.0] * 2, lam=1, fairness_ratio=0.8, smallest_cluster=30),
        starts("own", [200.0] * 2, lam=2, fairness_ratio=0.8, smallest_cluster=90),
        starts("rival", [100.0] * 2, fairness_ratio=0.8, smallest_cluster=60),
    )
    options = {"equal": "fairness_ratio", "level_from": "both", "order": "sse", "direction": "higher"}
    asked = {"metrics": ["smallest_cluster"], "options": options}
    found, numbers = verdict("compare", data, **asked)
    assert found == "does not hold" and "Smallest cluster of Own 30" in numbers
    assert judge("compare", data, methods=TURNED, **asked) == "holds"


def test_starts_that_leave_clusters_empty_do_not_count():
    # A single cluster is perfectly fair.
    whole = list(starts("own", [0.07] * 3, "delta", lam=1, n_nonempty=10))
    single = list(starts("own", [0.0] * 3, "delta", lam=2, n_nonempty=[1, 1, 10]))
    options = {"metrics": ["delta"], "methods": ["own"], "options": {"level": 0.06}}
    # The last start uses all clusters, but does not stand for its setting.
    assert judge("cannot_reach", material(whole, single), **options) == "holds in part"
    assert judge("reaches", material(whole, single), **options) == "does not hold"
    lost = whole[2] | {"n_nonempty": 9, "delta": 0.0}
    found, numbers = verdict("cannot_reach", material(whole[:2], [lost], single[:2]), **options)
    assert found == "holds" and "Own 0.0700 ± 0 (2 of 3 starts)" in numbers
    found, numbers = verdict("reaches", material(single), **options)
    assert found == "not tested" and numbers.startswith("Own leaves clusters empty")


def test_a_level_that_the_paper_reports(fronts, tmp_path):
    values = reported(
        tmp_path,
        "own,fairness_error,0.05",
        "rival,fairness_error,0.50",
        "2,town,10,,rival,fairness_error,0.50,",
        "3,town,10,,own,fairness_error,0.04,",
        "4,town,10,,own,fairness_error,0.000,",
    )
    told = Material(values, fronts.cells, fronts.steps, NAMES)
    numbers = verdict("compare", told, options=equal("reported", table="1"))[1]
    assert numbers.startswith("at fairness error 0.0550")
    # The second method's level counts if the table has none for the first.
    numbers = verdict("compare", told, options=equal("reported", table="2"))[1]
    assert numbers.startswith("at fairness error 0.510")
    # Only one method is as fair, or none is.
    narrow = equal("reported", table="3")
    assert judge("compare", told, options=narrow) == "holds in part"
    assert judge("compare", told, options=narrow, methods=TURNED) == "does not hold"
    assert judge("compare", told, options=equal("reported", table="4")) == "not tested"
    silent = Material(NOTHING, fronts.cells, fronts.steps, NAMES)
    assert judge("compare", silent, options=equal("reported", table="1")) == "not tested"


def test_never_rises():
    cells = list(starts("own", [1.0, 1.0]))
    falls = [(cells[0]["key"], step, value) for step, value in ((2, 9.0), (1, 10.0), (3, 9.0))]
    rises = [(cells[1]["key"], step, value) for step, value in ((1, 10.0), (2, 8.0), (3, 8.4))]
    told = {"methods": ["own"], "metrics": []}
    found, numbers = verdict("never_rises", material(cells, steps=falls), **told)
    assert found == "holds" and numbers == "objective rises in none of 1 fits"
    found, numbers = verdict("never_rises", material(cells, steps=[*falls, *rises]), **told)
    assert found == "does not hold" and "rises in 1 of 2 fits, by at most 5 %" in numbers
    cells[1]["n_nonempty"] = 1
    assert judge("never_rises", material(cells, steps=[*falls, *rises]), **told) == "holds"
    assert judge("never_rises", material(cells), **told) == "not tested"


def test_reaching_a_level():
    data = material(
        starts("own", [0.04, 0.09], "delta", lam=1),
        starts("rival", [0.07, 0.07], "delta"),
        starts("plain", [0.01], "delta"),
    )

    def both(method):
        return [
            judge(check, data, methods=method, metrics=["delta"], options={"level": 0.06})
            for check in ("cannot_reach", "reaches")
        ]

    assert both(["rival"]) == ["holds", "does not hold"]
    assert both(["plain"]) == ["does not hold", "holds"]
    # A single start reaches it, the mean does not.
    assert both(["own"]) == ["holds in part", "holds in part"]
    assert both(["rival", "plain"]) == ["does not hold", "holds in part"]
    high = material(starts("own", [0.4] * 2, "balance"))
    options = {"level": 0.39}
    assert judge("reaches", high, methods=["own"], metrics=["balance"], options=options) == "holds"


def histories(*values):
    """Return steps of a fit of Own, one history for each seed: its Delta and its cost."""
    cells = list(starts("own", [1.0] * len(values)))
    steps = [
        {"key": cell["key"], "step": step, "delta": delta, "sse": sse}
        for cell, history in zip(cells, values, strict=True)
        for step, (delta, sse) in enumerate(history)
    ]
    return Material(NOTHING, frame(cells), pd.DataFrame(steps), NAMES)


def test_settling():
    quick, slow = [1.0, 0.5, *[0.0] * 18], [*np.linspace(1, 0, 11), *[0.0] * 9]
    told = {"methods": ["own"], "metrics": []}

    def both(delta, sse):
        data = histories(zip(delta, sse, strict=True))
        return [
            judge("settles", data, options={"columns": ["delta", "sse"], **more}, **told)
            for more in ({}, {"first": "delta"})
        ]

    assert both(quick, slow) == ["holds", "holds"]
    assert both(slow, quick) == ["holds", "does not hold"]
    assert both(quick, np.linspace(1, 0, 20)) == ["holds in part", "holds"]  # the cost still falls
    restless = np.tile([0.0, 1.0], 10)
    assert both(restless, restless)[0] == "does not hold"
    told["options"] = {"columns": ["delta"]}
    numbers = verdict("settles", histories(zip(quick, slow, strict=True)), **told)[1]
    assert numbers.endswith("as a share of the range, in 1 fits: delta 0.0 %")
    assert judge("settles", material(starts("own", [1.0])), **told) == "not tested"


def test_spread_over_seeds():
    data = material(starts("own", [100.0, 104.0]), starts("rival", [100.0, 120.0]), starts("plain", [1.0]))
    assert judge("spread", data) == "holds"
    assert judge("spread", data, methods=["rival", "own"]) == "does not hold"
    assert judge("spread", data, methods=["own", "plain"]) == "not tested"
    # The deviations are pooled over the lambdas that both methods ran, and only those.
    pooled = material(
        starts("own", [100.0, 104.0], lam=1),
        starts("own", [100.0, 900.0], lam=5),
        starts("rival", [100.0, 101.0], lam=1),
        starts("rival", [100.0, 120.0], lam=2),
    )
    found, numbers = verdict("spread", pooled)
    assert found == "does not hold" and "pooled over lambda 1: Own 2.8, Rival 0.7" in numbers


@pytest.mark.parametrize(
    "power, found", [(0.5, "holds"), (0.6, "holds"), (0.1, "holds in part"), (-0.5, "does not hold")]
)
def test_falling_with_a_power_of_a_size(power, found):
    sizes = {"own": 100, "rival": 400, "plain": 1600}
    data = material(*(starts(name, [size**-power] * 2, "delta") for name, size in sizes.items()))
    named = {"methods": list(sizes), "metrics": ["delta"]}
    options = {"x": "sizes", "sizes": list(sizes.values()), "direction": "falls", "power": 0.5}
    result, numbers = verdict("trend", data, options=options, **named)
    assert result == found and f"slope {-power:.2f}, -0.5 asked" in numbers


def test_trend_over_settings():
    def by_lam(*balances):
        points = enumerate(zip((0.3, 0.2, 0.1), balances, strict=True))
        return material(*(starts("own", [b] * 2, "balance", lam=i, delta=d) for i, (d, b) in points))

    asked = {"methods": ["own"], "metrics": ["balance"]}
    falls = {"x": "delta", "direction": "falls"}
    found, numbers = verdict("trend", by_lam(0.1, 0.2, 0.4), options=falls, **asked)
    assert found == "holds"
    assert numbers == "Balance of Own by delta: 0.4 at 0.1, 0.2 at 0.2, 0.1 at 0.3: tau = -1.00"
    assert judge("trend", by_lam(0.1, 0.4, 0.2), options=falls, **asked) == "holds in part"
    assert judge("trend", by_lam(0.4, 0.2, 0.1), options=falls, **asked) == "does not hold"
    assert judge("trend", by_lam(0.1, 0.1, 0.1), options=falls, **asked) == "not tested"
    rises = {"x": "lam", "direction": "rises"}
    assert judge("trend", by_lam(0.1, 0.2, 0.4), options=rises, **asked) == "holds"
    assert judge("trend", by_lam(0.1, 0.2, np.nan), options=falls, **asked) == "not tested"


def curves(*values, metric="sse"):
    """Return the cells of a method: a list of values over lambda 0, 1, ... for each start."""
    by_lam = enumerate(zip(*values, strict=True))
    return material(*(starts("own", list(starts_at), metric, lam=lam) for lam, starts_at in by_lam))


def test_a_plateau():
    named = {"methods": ["own"]}
    rising = [float(min(lam, 12)) for lam in range(17)]
    found, numbers = verdict("levels_off", curves(rising, rising), **named)
    assert found == "holds" and "at 17 lambdas from 0 to 16 changes by 0.0 %" in numbers
    assert judge("levels_off", curves([*map(float, range(17))]), **named) == "does not hold"
    assert judge("levels_off", curves([5.0] * 17), **named) == "not tested"
    assert judge("levels_off", curves(rising[:7]), **named) == "not tested"


def test_curves_that_oscillate_at_first_only():
    rough = [lam + (lam % 2) for lam in range(9)]  # the slope changes by 2 at every lambda
    line, asked = [*range(8, 17)], {"methods": ["own"], "options": {"level": 8}}
    shaken = [*rough, *line[1:]]
    found, numbers = verdict("smooth_beyond", curves(shaken, shaken), **asked)
    assert found == "holds" and "over 2 starts" in numbers
    assert judge("smooth_beyond", curves(shaken[::-1]), **asked) == "does not hold"
    # One of three starts that jumps does not decide.
    jumps = [*shaken[:12], 90, *shaken[13:]]
    assert judge("smooth_beyond", curves(shaken, shaken, jumps), **asked) == "holds"
    assert judge("smooth_beyond", curves(jumps, shaken, jumps), **asked) == "does not hold"
    mild = [*rough, *(value + 0.7 * (value % 2) for value in line[1:])]
    assert judge("smooth_beyond", curves(mild), **asked) == "holds in part"
    assert judge("smooth_beyond", curves(shaken[:8]), **asked) == "not tested"


def test_a_gap_that_grows_with_k():
    def gaps(*values):
        by_k = zip((2, 5, 10), values, strict=True)
        given = [(k, lam, gap) for k, of_k in by_k for lam, gap in ((0, 0), (9, of_k))]
        return material(*(starts("own", [100.0 / k + gap] * 2, lam=lam, k=k) for k, lam, gap in given))

    options = {"x": "n_clusters", "direction": "rises", "lam": 9, "minus_lam": 0}
    asked = {"methods": ["own"], "n_clusters": [2, 5, 10], "options": options}
    found, numbers = verdict("trend", gaps(1, 2, 3), **asked)
    assert found == "holds" and numbers.startswith("Gap in SSE of Own by K: 1 at 2, 2 at 5, 3 at 10")
    assert judge("trend", gaps(1, 3, 2), **asked) == "holds in part"
    assert judge("trend", gaps(3, 2, 1), **asked) == "does not hold"
    # At K = 10 no fit uses all clusters.
    collapsed = gaps(1, 2, 3)
    at = (collapsed.cells.n_clusters == 10) & (collapsed.cells.lam == 9)
    collapsed.cells.loc[at, "n_nonempty"] = 2
    found, numbers = verdict("trend", collapsed, **{**asked, "n_clusters": [2, 5, 7, 10]})
    assert found == "not tested" and "fewer than three" in numbers
    # Without a gap the cost falls with K, and a K that was not asked for does not count.
    falls = {"methods": ["own"], "options": {"x": "n_clusters", "direction": "falls", "lam": 9}}
    assert judge("trend", gaps(1, 2, 3), **falls) == "holds"
    assert judge("trend", gaps(1, 2, 3), n_clusters=[2, 5], **falls) == "not tested"
    four = material(*(starts("own", [100.0 / k], k=k, n_nonempty=min(k, 10)) for k in (2, 5, 10, 20)))
    found, numbers = verdict("trend", four, n_clusters=[2, 5, 10, 20, 50], **falls)
    assert found == "holds in part" and "no setting with K = 20 uses all clusters" in numbers


def test_a_claim_holds_only_if_it_holds_everywhere():
    some = [*starts("own", [1.0]), *starts("rival", [2.0])]
    other = [*starts("own", [3.0], dataset="city"), *starts("rival", [2.0], dataset="city")]
    datasets = {"datasets": ["town", "city"]}
    found, numbers = verdict("compare", material(some, other), **datasets)
    assert found == "holds in part" and "Town: SSE" in numbers and "City: SSE" in numbers
    # The claim does not hold on a data set that was not run.
    assert judge("compare", material(some), **datasets) == "holds in part"
    assert judge("compare", material(other), **datasets) == "does not hold"
    assert judge("compare", material(some, other), datasets=["moon"]) == "not tested"
    by_k = [*some, *starts("own", [3.0], k=5), *starts("rival", [2.0], k=5)]
    found, numbers = verdict("compare", material(by_k))
    assert found == "holds in part" and "Town, K = 5: " in numbers
    assert judge("compare", material(by_k), n_clusters=[10]) == "holds"
    # Of the values of K that a claim names, only those count that its methods ran on the data set.
    assert judge("compare", material(some), n_clusters=[2, 10]) == "holds"
    assert judge("compare", material(some), n_clusters=[2]) == "not tested"


def test_the_setting_that_represents_a_method(fronts):
    # It is the cheapest setting unless the claim names a lambda or other parameters.
    assert "Own 80.0" in verdict("compare", fronts)[1]
    assert "Own 100.0" in verdict("compare", fronts, options={"lam": 2})[1]
    assert "Own 100.0" in verdict("compare", fronts, options={"settings": {"own": {"lam": 2}}})[1]
    assert judge("compare", fronts, options={"lam": 3}) == "not tested"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"check": "proves"}, ".check: there is no 'proves'"),
        ({"options": {"faktor": 2}}, ".options: there is no 'faktor'; did you mean 'factor'?"),
        ({"options": {"factor": "two"}}, ".options.factor: expected a number, found 'two'"),
        ({"options": {"direction": "up"}}, "there is no 'up'; there are: 'higher', 'lower'"),
        ({"methods": ["own"]}, ".methods: compare needs 2"),
        ({"check": "spread", "methods": ["own", "rival", "plain"]}, ".methods: spread takes at most 2"),
        ({"check": "settles", "options": {"columns": ["sse"]}}, ".metrics: settles takes at most 0"),
        ({"options": {"factor": 2, "margin": 1}}, "'margin' replaces 'factor'"),
        ({"options": {"whole_range": True}}, ".options: compare needs 'equal'"),
        ({"check": "reaches"}, ".options: reaches needs 'level'"),
        ({"options": {"equal": "sse", "level_from": "reported", "table": "9"}}, "table: there is no '9'"),
        ({"options": {"equal": "sse"}}, ".options: compare needs 'level_from'"),
        ({"options": {"level_from": "both"}}, ".options: compare needs 'equal'"),
        ({"options": {"equal": "sse", "level_from": "reported"}}, "needs 'table'"),
        ({"options": {"equal": "sse", "level_from": "stated"}}, "needs 'level'"),
        ({"check": "settles", "options": {"columns": ["sse"], "first": "delta"}}, "'delta' is not one of"),
        ({"check": "trend", "options": {"x": "lam"}}, "trend needs 'direction'"),
        ({"check": "trend", "options": {"x": "sizes", "direction": "falls", "sizes": [1]}}, "three or more"),
    ],
)
def test_claims_that_no_check_accepts(change, message):
    found = list(claim_problems("c", claim_of(**{"check": "compare", **change}), {}))
    assert all(line.startswith("claims.c.") for line in found), found
    assert any(message in line for line in found), found


def test_claims_are_written(tmp_path, fronts):
    claims = {
        "cheaper": claim_of("compare", text="Own is <cheaper>."),
        "fair": claim_of("reaches", {"level": 0.1}, methods=["absent"]),
    }
    make_claims(replace(fronts, paper="p", title="P"), claims, tmp_path / "claims")
    found = load_claims(tmp_path / "claims.csv")
    assert list(found.columns) == CLAIM_COLUMNS
    together = found[found.dataset == ""].set_index("claim")
    assert together.verdict.to_dict() == {"cheaper": "holds", "fair": "not tested"}
    assert found.n_clusters.dropna().to_list() == [10]
    text = (tmp_path / "claims.md").read_text()
    for words in ("Verdicts on 2 claims: holds 1, not tested 1.", "\n**holds**\n", "Own is &lt;cheaper&gt;."):
        assert words in text
