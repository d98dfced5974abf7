"""The page in a real browser: sorting, filters, charts, keys, contrast, a narrow screen."""

import pandas as pd
import pytest
from pages import made_up_scores, make_page_folder

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return make_page_folder(tmp_path_factory.mktemp("browser") / "results", made_up_scores())


@pytest.fixture
def page(browser, file):
    browser.resize(1400)
    browser.choose_scheme("light")
    browser.open(file)
    yield browser
    assert browser.errors == []
    assert all(url.startswith(("file:", "data:", "about:")) for url in browser.requests)


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens the page of other scores."""

    def open_page(scores, **more):
        browser.resize(1400)
        browser.open(make_page_folder(tmp_path / "results", scores, **more))
        return browser

    yield open_page
    assert browser.errors == []


def pick(page, field, value):
    """Give the select with this id a value."""
    page.js(f"(() => {{const s = document.getElementById({field!r}); s.value = {value!r};"
            "s.dispatchEvent(new Event('change'))})()")  # fmt: skip


def choose(page, form, name, text):
    """Choose the option with this text, or write it, in a field of a form."""
    page.js(
        f"(() => {{const field = document.getElementById({form!r}).elements[{name!r}];"
        f"const option = [...field.options ?? []].find(o => o.text.startsWith({text!r}));"
        f"field.value = option ? option.value : {text!r};"
        "for (const kind of ['change', 'input']) field.dispatchEvent(new Event(kind))})()"
    )


CAPTION = "Evidence of VFC, Table 3"
TABLE = (
    f"[...document.querySelectorAll('table.data')].find(t => t.caption.textContent.startsWith('{CAPTION}'))"
)


def column(page, name):
    return page.js(
        f"(() => {{const t = {TABLE};"
        f"const i = [...t.tHead.rows[0].cells].findIndex(c => c.textContent === {name!r});"
        "return [...t.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[i].textContent.trim())})()"
    )


def number(text):
    return float(text.partition(" ±")[0].replace(",", ""))


def header(name):
    return f"[...{TABLE}.tHead.rows[0].cells].find(c => c.textContent === {name!r})"


def unfold(page):
    page.js("document.querySelectorAll('details').forEach(d => { d.open = true })")


def test_sorting_by_mouse_and_by_key(page):
    unfold(page)
    page.js(f"{header('Ours')}.querySelector('button').click()")
    values = [number(v) for v in column(page, "Ours") if v != "–"]
    # Missing values are last, in both directions.
    assert values == sorted(values) and column(page, "Ours")[-1] == "–"
    assert page.js(f"{header('Ours')}.getAttribute('aria-sort')") == "ascending"
    page.js(f"{header('Ours')}.querySelector('button').focus()")
    page.press("Enter")
    assert [number(v) for v in column(page, "Ours")[:-1]] == values[::-1]
    assert page.js(f"{header('Ours')}.getAttribute('aria-sort')") == "descending"
    page.js(f"{header('Data set')}.querySelector('button').click()")
    assert page.js(f"{header('Ours')}.getAttribute('aria-sort')") is None
    assert column(page, "Data set") == sorted(column(page, "Data set"))


def test_distances_of_the_leaderboard_are_sorted_as_numbers(opened):
    scores = made_up_scores()
    scores.loc[scores.method == "kmeans", "counts"] = '{"f": [0, 5], "m": [9, 6]}'
    page = opened(scores)
    table = "document.querySelector('.board table')"
    page.js(f"{table}.querySelectorAll('th button')[2].click()")
    texts = page.js(f"[...{table}.tBodies[0].rows].map(r => r.cells[2].textContent)")
    assert [text.partition(",")[0].replace("\u00a0", " ") for text in texts] == ["0.4 %", "2.3 %", "∞"]


def test_filtering(page):
    everything = column(page, "Method")
    form = f"{TABLE}.closest('.scroll').previousElementSibling"
    page.js(
        f"(() => {{const labels = [...{form}.querySelectorAll('label')];"
        "const s = labels.find(l => l.textContent.startsWith('Method'))"
        ".querySelector('select'); s.value = 'VFC K-means'; s.dispatchEvent(new Event('change'))})()"
    )
    left = column(page, "Method")
    assert set(left) == {"VFC K-means"}
    assert 0 < len(left) < len(everything)
    said = page.js(f"{form}.querySelector('[role=status]').textContent")
    assert said == f"{len(left)} of {len(everything)} rows"


CHART = "document.querySelectorAll('figure')[0]"
STATE = "JSON.stringify([...document.querySelectorAll('figure:has(svg.front)')].map(f => f.innerHTML))"


def test_another_pair_and_back_shows_the_same(page):
    before = page.js(STATE)
    choose(page, "choose", "fairness", "Fairness error")
    other = page.js(STATE)
    choose(page, "choose", "fairness", "Balance")
    assert page.js(STATE) == before != other


TIP = "document.getElementById('tip')"


@pytest.mark.parametrize(
    "mark, texts",
    [
        ("svg.front .p.l2", ["seed", "SSE", "Balance"]),
        (".dot.c1", ["VFC, Table 3: Bank <J=3> & co, Bera"]),
    ],
)
def test_hovering_shows_what_a_mark_of_a_front_or_of_the_first_picture_is(page, mark, texts):
    assert page.js(f"{TIP}.hidden")
    page.hover(mark)
    assert all(text in page.js(f"{TIP}.textContent") for text in texts)
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert page.js(f"{TIP}.hidden")


def test_arrow_keys_walk_along_the_front(page):
    page.js(f"{CHART}.querySelector('svg.front').focus()")
    page.settle()
    seen = []
    for _ in range(3):
        page.press("ArrowRight")
        seen.append(page.js(f"{TIP}.textContent"))
    assert len(set(seen)) == 3
    costs = [float(text.partition("SSE ")[2].partition(" ")[0].replace(",", "")) for text in seen]
    assert costs == sorted(costs)
    page.press("ArrowLeft")
    assert page.js(f"{TIP}.textContent") == seen[1]
    page.press("Escape")
    assert page.js(f"{TIP}.hidden")


def test_another_fairness_metric(page):
    choose(page, "choose", "fairness", "Fairness error")
    label = page.js(f"{CHART}.querySelector('.yl').textContent")
    assert label == "Fairness error (lower is better)"
    # Infinite errors cannot be drawn, and a line below the picture says so.
    note = page.js(f"{CHART}.querySelector('p.note').textContent")
    assert note.startswith("Beyond the edges, without a finite value, or with empty clusters: ")
    assert "K-means (1)" in note
    values = page.js(f"[...{CHART}.querySelectorAll('tbody tr')].map(r => Number(r.cells[4].textContent))")
    assert values == sorted(values, reverse=True)
    assert page.js(f"{CHART}.querySelector('thead').textContent").endswith("SSEFairness error")


def test_marks_far_off_and_marks_in_one_place(opened):
    frame = made_up_scores(datasets=["adult"])
    frame.loc[frame.lam == 3000, ["sse", "objective"]] *= 5
    same = (frame.lam == 5000) & (frame.seed == 0)
    for metric in ("sse", "balance", "objective"):
        frame.loc[same, metric] = 0.85 * frame.loc[same, metric].iloc[0]
    browser = opened(frame)
    gone = "document.querySelectorAll('.p[display=none]').length"
    note = "document.querySelector('figure p.note').textContent"
    assert browser.js(gone) > 0 and browser.js(note) != ""
    browser.js(f"{CHART}.querySelector('svg.front').focus()")
    browser.press("ArrowRight")
    assert "In the same place: " in browser.js("document.getElementById('tip').textContent")


def test_a_telephone_shows_a_number_with_what_was_reported(page):
    page.resize(390)
    unfold(page)
    page.js(f"{TABLE}.scrollIntoView()")
    ends = "e.offsetParent ? [e.getBoundingClientRect().left, innerWidth - e.getBoundingClientRect().right] : [0]"
    # Five rows of ten columns, with those of the published program.
    cards = page.all(".cards td", ends)
    assert len(cards) == 50 and min(map(min, cards)) >= 0
    page.js(f"{header('Ours')}.querySelector('button').click()")
    values = [number(v) for v in column(page, "Ours") if v != "–"]
    assert values == sorted(values)


DIM = "[...new Set([...document.querySelectorAll('svg.front .p.dim')].map(p => p.dataset.m))].sort()"


def test_families_and_methods_stand_out(page):
    choose(page, "choose", "family", "assignment")
    assert page.js(DIM) == ["0", "1"]
    choose(page, "choose", "family", "all")
    page.js("document.querySelector('.legend button').click()")
    assert page.js("document.querySelector('.legend button').getAttribute('aria-pressed')") == "true"
    assert page.js(DIM) == ["1", "2"]


ANSWER = "document.getElementById('answer').textContent"
LEVEL = "Number(document.getElementById('ask').elements.level.value)"


def test_the_form_finds_the_cheapest_at_a_level_of_fairness(page):
    # It starts at almost full fairness.
    assert page.js(LEVEL) > 0.4 and "Runner-up: " in page.js(ANSWER)
    assert "Cheapest:  VFC K-means" in page.js(ANSWER)
    assert "no labels within its bounds are more than 0.013 % cheaper." in page.js(ANSWER)
    assert "over the cheapest method, K-means." in page.js(ANSWER)
    choose(page, "ask", "level", "0")
    assert "Cheapest:  K-means" in page.js(ANSWER) and "No method is cheaper." in page.js(ANSWER)
    choose(page, "ask", "level", "1")
    assert page.js(ANSWER).startswith("No method of this run is as fair. The fairest: ")
    for refused in "-1", "2", "":
        choose(page, "ask", "level", refused)
        assert page.js(ANSWER) == "Balance is at least 0 and at most 1: enter another level."
    # Lower errors are better.
    choose(page, "ask", "fairness", "Fairness error")
    assert page.js("document.querySelector('#ask .bound').textContent") == "at most"
    assert "Cheapest: " in page.js(ANSWER)


def test_methods_that_are_no_better_than_random_labels_are_hollow_and_never_the_cheapest(opened):
    scores = made_up_scores()
    plain = scores[scores.method == "kmeans"]
    fair = plain.assign(sse=30_000, kmedians_cost=60_000, objective=30_000, balance=0.98)
    fair = fair.assign(params='{"fair": 1}', key=plain.key + "f")
    more = [fair.assign(method="random_labels"), plain.assign(method="famous"), fair.assign(method="famous")]
    # The other clusterings are fair.
    more[1]["counts"] = '{"f": [0, 5], "m": [9, 6]}'
    frame = pd.concat([scores, *more], ignore_index=True)
    browser = opened(frame, papers=())
    assert "not recommended here: famous." in browser.js("document.getElementById('summary').innerText")
    choose(browser, "ask", "level", "0.95")
    assert browser.js(ANSWER).startswith(
        "Only methods that are no better than random labels are as fair (famous, random_labels). The fairest:  "
    )
    for level in "0", "0.3":
        choose(browser, "ask", "level", level)
        assert "Cheapest: " in browser.js(ANSWER) and "famous" not in browser.js(ANSWER)
        assert "method that is better than random labels" in browser.js(ANSWER)
    hollow = "[...document.querySelector('svg.front').querySelectorAll('.p.random')]"
    for _ in range(2):
        levels = browser.js(f"{hollow}.map(mark => mark.getAttribute('class').match(/l\\d/)[0])")
        assert len(levels) == 3 and "l2" not in levels
        choose(browser, "choose", "fairness", "Balance")
    assert "famous" not in browser.js("document.querySelector('.on-front').textContent")
    legend = browser.js("document.querySelector('.legend').textContent")
    assert "famous (no better than random labels in SSE, K-medians cost)" in legend


def test_the_address_holds_the_question(page, file):
    choose(page, "ask", "fairness", "Fairness error")
    choose(page, "ask", "level", "0.5")
    asked, answer = page.js("location.href"), page.js(ANSWER)
    page.open(file)
    assert page.js(ANSWER) != answer
    page.js(f"location.href = {asked!r}; location.reload()")
    while page._next().get("method") != "Page.loadEventFired":
        pass
    page.js("new Promise(done => setTimeout(done, 500))")
    assert page.js(LEVEL) == 0.5 and page.js(ANSWER) == answer


def test_the_first_screen_names_program_commit_and_day(page):
    note = "document.querySelector('#summary .note')"
    assert page.js(f"{note}.textContent") == "fairclust 1, commit abc of 2026-11-28"
    assert page.js(f"{note}.getBoundingClientRect().bottom") < 300


def test_the_header_stays_and_is_low_on_a_telephone(page):
    page.resize(390)
    page.js("scrollTo(0, 1500)")
    box = "document.querySelector('header').getBoundingClientRect()"
    assert page.js(f"scrollY > 1000 && {box}.top === 0") and page.js(f"{box}.height") < 100
    page.js("location.hash = '#leaderboard'")
    page.settle()
    top = "document.querySelector('#leaderboard h2').getBoundingClientRect().top"
    assert page.js(top) >= page.js(f"{box}.bottom")


def test_a_legend_shows_marks_on_and_off_the_front(page):
    texts = page.all(".levels li", "e.textContent.trim()")
    assert [text.split()[0] for text in texts] == ["on", "only", "beaten"]
    opacity = page.all(".levels use", "+getComputedStyle(e).opacity")
    assert opacity == sorted(opacity, reverse=True) and len(set(opacity)) == 3
    for level, shown in zip((2, 1, 0), opacity, strict=True):
        assert set(page.all(f"svg.front .l{level}", "+getComputedStyle(e).opacity")) <= {shown}


def test_a_print_is_black_on_white_with_whole_tables_and_without_controls(page):
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    unfold(page)
    page.call("Emulation.setEmulatedMedia", media="print", features=dark)
    try:
        assert page.js("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        assert page.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not any(page.all("nav, select, input, form", "!!e.offsetParent"))
        cut = "e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY !== 'visible'"
        assert not any(page.all(".scroll", f"!!e.offsetParent && {cut}"))
    finally:
        page.call("Emulation.setEmulatedMedia", media="", features=[])
        page.choose_scheme("light")


def test_the_page_of_one_data_set(page):
    shown = ("details.of:not([hidden])", "e.dataset.dataset")
    assert page.all(*shown) == ["Adult", "Bank <J=3> & co"]
    pick(page, "dataset", "Bank <J=3> & co")
    assert page.all(*shown) == ["Bank <J=3> & co"]
    assert set(column(page, "Data set")) == {"Bank <J=3> & co"}
    chosen = "document.getElementById('ask').elements.chart.selectedOptions[0].text"
    assert page.js(chosen).startswith("Bank")
    assert page.js("location.hash").startswith("#ask?chart=1&")
    pick(page, "dataset", "Adult")
    claims = ".claims tbody tr:not([hidden])"
    assert page.all(claims, "e.cells[3].textContent") == ["Adult"]
    pick(page, "dataset", "10 % noise")
    assert column(page, "Data set") == ["10\N{NO-BREAK SPACE}% noise"]
    pick(page, "dataset", "")
    assert len(page.all(*shown)) == 2 and set(column(page, "Data set")) > {"Adult"}


def test_a_link_opens_the_section_that_it_names(page):
    assert page.js("document.documentElement.scrollHeight") < 5000
    page.js("location.hash = '#origin'")
    page.settle()
    assert page.js("document.getElementById('origin').open")


def test_the_leaderboard_of_another_cost(page):
    shown = (".board:not([hidden])", "e.querySelector('caption').textContent")
    assert page.all(*shown) == ["SSE: distance to the best known"]
    pick(page, "board-cost", "1")
    assert page.all(*shown) == ["K-medians cost: distance to the best known"]
    assert page.js("document.getElementById('no-board').hidden")


@pytest.mark.parametrize("width", [390, 768, 1400])
def test_nothing_is_wider_than_the_screen(page, width):
    page.resize(width)
    assert page.js("document.documentElement.scrollWidth") <= width
    wide = "!e.closest('.scroll, pre, svg') && e.getBoundingClientRect().right > innerWidth + 1"
    assert [text for text in page.all("main *", f"{wide} ? e.outerHTML.slice(0, 80) : ''") if text] == []


CONTRAST = """
(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
  const rgba = (c) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1);
    const d = canvas.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255]; };
  const light = (c) => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgba(getComputedStyle(e).backgroundColor);
      if (c[3] > .99) return c;
    }
    return [255, 255, 255, 1];
  };
  const bad = [];
  document.querySelectorAll('details').forEach(d => d.open = true);
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || ['SCRIPT', 'STYLE', 'OPTION'].includes(e.tagName)) continue;
    const style = getComputedStyle(e), colour = rgba(e.closest('svg') ? style.fill : style.color);
    const [a, b] = [light(colour), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) bad.push([e.tagName, e.textContent.slice(0, 30), ratio.toFixed(2)].join(' '));
  }
  return [...new Set(bad)];
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_of_all_text(page, scheme):
    page.choose_scheme(scheme)
    assert page.js(CONTRAST) == []


def test_names_for_screen_readers(page):
    name = "e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.[0]?.textContent.trim()"
    named = "select, button, [role=region], svg.front, form"
    assert [text for text in page.all(named, f"({name}) ? '' : e.outerHTML.slice(0, 80)") if text] == []
    assert all(page.all("table", "!!(e.caption && e.querySelector('th[scope]'))"))
    assert page.js("document.documentElement.lang") == "en"


def test_a_graph_shows_the_cost_that_it_has(opened):
    frame = made_up_scores()
    frame.loc[frame.dataset == "bank_3", "ncut"] = frame.sse / 1e4
    frame.loc[frame.dataset == "bank_3", ["sse", "kmedians_cost"]] = None
    browser = opened(frame)
    assert browser.all(".xl", "e.textContent") == ["SSE (lower is better)", "Ncut (lower is better)"]
    marks = "document.querySelectorAll('svg.front')[1].querySelectorAll('.p:not([display])').length"
    assert browser.js(marks) > 5
    choose(browser, "choose", "cost", "K-medians")
    names = ["K-medians cost (lower is better)", "Ncut (lower is better)"]
    assert browser.all(".xl", "e.textContent") == names


def test_diagrams_of_ranks_are_no_fronts(opened):
    """They are pictures without marks, and the form and the charts work beside them."""
    scores = made_up_scores()
    third = scores[scores.dataset == "adult"].assign(dataset="synthetic", key=lambda rows: rows.key + "3")
    browser = opened(pd.concat([scores, third], ignore_index=True), papers=())
    assert browser.js("document.querySelectorAll('#leaderboard figure').length") >= 1
    assert browser.js("document.getElementById('ask').elements.level.value") != ""
