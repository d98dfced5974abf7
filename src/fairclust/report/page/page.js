"use strict";
// This script sorts and filters tables, shows the charts, which report/charts.py has drawn, says what a mark is, and
// finds the cheapest method. Without it, the page has all tables and figures of the papers and the leaderboard.
(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (c) => c.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(unpacked).json();
  const tip = document.getElementById("tip");
  document.documentElement.classList.add("has-js");
  const el = (name, props = {}, ...children) => {
    const made = Object.assign(document.createElement(name), props);
    made.append(...children);
    return made;
  };
  const inSvg = (name, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };

  // Tables

  // The text of a cell or a heading, whose units stand behind spaces without a break.
  const textOf = (node) => node.textContent.trim().replaceAll("\u00a0", " ");
  const numeric = (text) => {
    const t = text.replace(/ ±.*|, best.*|(, [\d,]+)? of .*/, "").replace(/[,\s%+]/g, "").replace("−", "-").replace(/\(.*/, "");
    return t === "∞" ? Infinity : t === "" || t === "–" ? NaN : Number(t);
  };
  const sortBy = (table, th) => {
    const column = th.cellIndex;
    const down = th.getAttribute("aria-sort") === "ascending";
    const isNumber = th.classList.contains("n");
    const body = table.tBodies[0];
    const value = (row) => {
      const text = textOf(row.cells[column]);
      return isNumber ? numeric(text) : text;
    };
    const rows = [...body.rows].map((row) => [value(row), row]);
    rows.sort(([a], [b]) => {
      if (!isNumber) return (down ? -1 : 1) * a.localeCompare(b, "en", { numeric: true });
      // Rows without a value stay at the end in both directions.
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
      return a === b ? 0 : (down ? b - a : a - b);
    });
    body.append(...rows.map(([, row]) => row));
    for (const other of th.parentNode.cells) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
  };
  // What the filter by data set calls.
  const ofDataset = [];
  for (const table of document.querySelectorAll("table.data")) {
    const head = [...table.tHead.rows[0].cells];
    for (const th of head) {
      const button = el("button", { type: "button" }, th.textContent);
      button.addEventListener("click", () => sortBy(table, th));
      th.replaceChildren(button);
    }
    const filters = head.filter((th) => "filter" in th.dataset).map((th) => {
      const column = th.cellIndex;
      const values = [...new Set([...table.tBodies[0].rows].map((row) => textOf(row.cells[column])))];
      return { th, column, values };
    });
    const count = el("span", { className: "note" });
    count.setAttribute("role", "status");
    const chosen = new Map();
    const apply = () => {
      let left = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = [...chosen].some(([column, wanted]) => wanted && textOf(row.cells[column]) !== wanted);
        left += !row.hidden;
      }
      const all = table.tBodies[0].rows.length;
      count.textContent = left < all ? `${left} of ${all} rows` : "";
    };
    const form = el("form", { className: "controls" });
    form.setAttribute("aria-label", `Filters of: ${table.caption.textContent}`);
    for (const { th, column, values } of filters) {
      const select = el("select", {}, el("option", { value: "" }, "all"), ...values.map((v) => el("option", { value: v }, v)));
      select.addEventListener("change", () => { chosen.set(column, select.value); apply(); });
      if (values.length > 1) form.append(el("label", {}, `${th.textContent} `, select));
      if (th.textContent === "Data set") {
        ofDataset.push((wanted) => {
          select.value = values.includes(wanted) ? wanted : "";
          chosen.set(column, wanted);
          apply();
        });
      }
    }
    form.append(count);
    if (filters.length) table.closest(".scroll").before(form);
  }

  // Leaderboards

  const boards = [...document.querySelectorAll(".board")];
  const pick = document.getElementById("board-cost");
  if (pick) {
    boards[0].after(...boards.slice(1));
    document.getElementById("more-boards").remove();
    const show = () => {
      for (const board of boards) board.hidden = board.dataset.cost !== pick.value;
      document.getElementById("no-board").hidden = boards.some((board) => !board.hidden);
    };
    pick.value = boards[0].dataset.cost;
    pick.addEventListener("change", show);
    show();
  }

  // Charts

  const show = (metric, value) => {
    if (Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return "∞";
    if (value === 0) return "0";
    const digits = data.metrics[metric].decimals;
    // As Python rounds.
    return value.toLocaleString("en",
      { minimumFractionDigits: digits, maximumFractionDigits: digits, roundingMode: "halfEven" });
  };
  // Whether a method is no better than random labels in a cost.
  const isRandom = (m, cost) => data.methods[m].random.includes(cost);
  const icon = (m) => {
    const { colour, shape } = data.methods[m];
    const svg = inSvg("svg", { class: "key", viewBox: "-7 -7 14 14", "aria-hidden": "true" });
    svg.append(inSvg("use", { href: `#m${shape}`, class: `p c${colour} l2` }));
    return svg;
  };

  // Puts the tip beside a mark.
  const place = (mark) => {
    const box = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const x = Math.max(6, Math.min(innerWidth - own.width - 6, box.x + box.width / 2 - own.width / 2));
    const above = box.y - own.height - 8;
    tip.style.left = `${x}px`;
    tip.style.top = `${above > 60 ? above : box.y + box.height + 8}px`;
  };

  class Chart {
    constructor(figure, model) {
      this.figure = figure;
      this.model = model;
      this.svg = figure.querySelector("svg.front");
      this.points = model.marks.map(({ values, ...point }) => ({
        ...point,
        mark: inSvg("use", { href: `#m${data.methods[point.method].shape}`, "data-m": point.method }),
        values: values.split(",").map((v) => (v === "" ? NaN : v === "inf" ? Infinity : Number(v))),
      }));
      this.current = null;
      this.svg.addEventListener("pointermove", (event) => this.point(event));
      this.svg.addEventListener("pointerdown", (event) => this.point(event));
      this.svg.addEventListener("pointerleave", () => this.select(null));
      this.svg.addEventListener("blur", () => this.select(null));
      this.svg.addEventListener("keydown", (event) => this.key(event));
    }

    // Graphs have no sum of squares, so the first cost that has values is shown.
    costFor(wanted) {
      return this.model.costs.includes(wanted) ? wanted : this.model.costs[0];
    }

    get visible() {
      return this.points.filter((p) => p.inside && !p.dimmed);
    }

    point(event) {
      const box = this.svg.getBoundingClientRect();
      const scale = this.svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      let best = null, least = 20 ** 2;
      for (const p of this.visible) {
        // Of marks at the same place, the one on the front is chosen.
        const away = (p.x - x) ** 2 + (p.y - y) ** 2 - (p.level === 2 ? 1 : 0);
        if (away < least) { best = p; least = away; }
      }
      this.select(best);
    }

    key(event) {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (event.key === "Escape") this.select(null);
      if (!step && event.key !== "Home" && event.key !== "End") return;
      event.preventDefault();
      const front = this.visible.filter((p) => p.level === 2);
      const ordered = (event.shiftKey || !front.length ? this.visible : front).sort((a, b) => a.x - b.x || b.y - a.y);
      if (!ordered.length) return;
      const at = ordered.indexOf(this.current);
      const next = event.key === "Home" ? 0 : event.key === "End" ? ordered.length - 1
        : at < 0 ? (step > 0 ? 0 : ordered.length - 1) : Math.max(0, Math.min(ordered.length - 1, at + step));
      this.select(ordered[next]);
    }

    select(p) {
      if (p === this.current) return;
      this.current?.mark.classList.remove("now");
      this.current = p;
      tip.hidden = !p;
      if (!p) return;
      p.mark.classList.add("now");
      const rows = [p.setting, `seed ${p.seed}`, `${data.metrics[this.cost].label} ${show(this.cost, p.values[this.cost])}`,
        `${data.metrics[this.fairness].label} ${show(this.fairness, p.values[this.fairness])}`];
      const here = this.visible.filter((q) => q.method !== p.method && Math.abs(q.x - p.x) < 2 && Math.abs(q.y - p.y) < 2);
      const others = [...new Set(here.map((q) => data.methods[q.method].label))];
      if (isRandom(p.method, this.cost)) rows.push("no better than random labels");
      tip.replaceChildren(el("b", {}, data.methods[p.method].label), rows.filter(Boolean).join(" · "),
        ...(others.length ? [el("i", {}, `In the same place: ${others.join(", ")}`)] : []));
      place(p.mark);
    }

    draw(wanted, fairness) {
      this.select(null);
      const cost = this.costFor(wanted), picture = this.model.pictures[`${cost},${fairness}`];
      Object.assign(this, { cost, fairness });
      this.svg.querySelector(".frame").innerHTML = picture.frame;
      [[cost, ".xl"], [fairness, ".yl"]].forEach(([metric, at]) => {
        const { label, higher } = data.metrics[metric];
        this.svg.querySelector(at).textContent = `${label} (${higher ? "higher" : "lower"} is better)`;
      });
      picture.at.split(";").forEach((place, i) => {
        const p = this.points[i], [x, y, level] = place.split(",");
        Object.assign(p, { x: Number(x), y: Number(y), level: Number(level), inside: x !== "" });
        p.mark.setAttribute("transform", `translate(${p.x} ${p.y})`);
        if (p.inside) p.mark.removeAttribute("display"); else p.mark.setAttribute("display", "none");
        p.mark.setAttribute("class", `p c${data.methods[p.method].colour} l${level}${isRandom(p.method, cost) ? " random" : ""}`);
      });
      this.svg.querySelector(".points").append(...[...this.points].sort((a, b) => a.level - b.level).map((p) => p.mark));
      this.figure.querySelector("p.note").textContent = picture.note;
      const front = this.points.filter((p) => p.level === 2).sort((a, b) => a.values[cost] - b.values[cost]);
      const methods = [...new Set(front.filter((p) => p.inside).map((p) => p.method))];
      const keys = methods.map((m) => el("span", {}, icon(m), ` ${data.methods[m].label}`));
      this.figure.querySelector(".on-front").replaceChildren("On the front: ", ...(keys.length ? keys : ["nothing has a value"]));
      const table = this.figure.querySelector("table");
      [cost, fairness].forEach((metric, i) => { table.tHead.rows[0].cells[3 + i].textContent = data.metrics[metric].label; });
      table.tBodies[0].replaceChildren(...front.map((p) => el("tr", {},
        el("td", {}, data.methods[p.method].label), el("td", {}, p.setting || "–"), el("td", { className: "n" }, p.seed),
        ...[cost, fairness].map((metric) => el("td", { className: "n" }, show(metric, p.values[metric]))))));
    }

    dim(wanted) {
      this.select(null);
      for (const p of this.points) {
        p.dimmed = !wanted(p.method);
        p.mark.classList.toggle("dim", p.dimmed);
      }
      for (const line of this.svg.querySelectorAll(".l")) {
        line.classList.toggle("dim", !wanted(data.methods.findIndex((m) => m.name === line.dataset.m)));
      }
    }
  }

  // The tip shows what a dot of the first picture is.
  for (const dot of document.querySelectorAll(".dot")) {
    const text = dot.firstElementChild.textContent;
    dot.setAttribute("aria-label", text);
    dot.replaceChildren();
    dot.addEventListener("pointerenter", () => {
      tip.replaceChildren(text);
      tip.hidden = false;
      place(dot);
    });
    dot.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  const fronts = document.querySelectorAll("figure:has(svg.front)");
  const charts = [...fronts].map((figure, i) => new Chart(figure, data.charts[i]));
  const choose = document.getElementById("choose").elements;
  const pressed = new Set();
  const keys = [...document.querySelectorAll(".legend li")].map((li) => {
    const method = Number(li.dataset.m);
    const button = el("button", { type: "button" }, ...li.childNodes);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const isOn = !pressed.has(method);
      if (isOn) pressed.add(method); else pressed.delete(method);
      button.setAttribute("aria-pressed", String(isOn));
      dim();
    });
    li.replaceChildren(button);
    return { li, method };
  });
  const ofFamily = (m) => !choose.family.value || data.methods[m].family === choose.family.value;
  const dim = () => {
    const wanted = (m) => ofFamily(m) && (!pressed.size || pressed.has(m));
    charts.forEach((chart) => chart.dim(wanted));
    for (const { li, method } of keys) li.hidden = !ofFamily(method);
  };
  const redraw = () => {
    const cost = Number(choose.cost.value), fairness = Number(choose.fairness.value);
    charts.forEach((chart) => chart.draw(cost, fairness));
    dim();
  };

  // The cheapest method

  const ask = document.getElementById("ask").elements;
  // Settings that leave clusters empty have no cost.
  const wholeIn = (chart, cost) => chart.points.filter((p) => Number.isFinite(p.values[cost]));
  const usableIn = (chart, cost) => wholeIn(chart, cost).filter((p) => !isRandom(p.method, cost));
  const cheapestOf = (points, cost) => points.reduce((a, b) => (b.values[cost] < a.values[cost] ? b : a), points[0]);
  const answer = () => {
    const chart = charts[ask.chart.value], cost = chart.costFor(Number(ask.cost.value)), fairness = Number(ask.fairness.value);
    const { higher, label, range: [low, high] } = data.metrics[fairness], level = Number(ask.level.value);
    const isRefused = ask.level.value === "" || (low !== null && level < low) || (high !== null && level > high);
    ask.level.setAttribute("aria-invalid", String(isRefused));
    if (isRefused) {
      const bounds = [low === null ? "" : `at least ${low}`, high === null ? "" : `at most ${high}`];
      const text = `${label} is ${bounds.filter(Boolean).join(" and ") || "a number"}: enter another level.`;
      document.getElementById("answer").replaceChildren(el("p", {}, text));
      return;
    }
    const usable = usableIn(chart, cost);
    const isFair = ({ values }) => (higher ? values[fairness] >= level : values[fairness] <= level);
    const cheapest = (points) => cheapestOf(points, cost);
    const more = (p, q) => {
      const a = p.values[cost], b = q.values[cost];
      return a === b ? "0.0 %" : b === 0 ? "∞" : `${(100 * (a / b - 1)).toFixed(1)} %`;
    };
    // The sentences do not count methods that are no better than random labels.
    const better = wholeIn(chart, cost).length > usable.length ? " that is better than random labels" : "";
    const words = (p) => [el("b", {}, icon(p.method), ` ${data.methods[p.method].label}`), p.setting ? ` (${p.setting})` : "",
      `: ${data.metrics[cost].label} ${show(cost, p.values[cost])}, ${label} ${show(fairness, p.values[fairness])}`];
    const fair = usable.filter(isFair), lines = [];
    if (fair.length) {
      const first = cheapest(fair), second = cheapest(fair.filter((p) => p.method !== first.method));
      const [of, excess] = first.excess;
      const proof = of === cost && excess !== undefined
        ? `Certified: with these centres, no labels within its bounds are more than ${excess} cheaper.`
        : "No certificate bounds its cost.";
      lines.push(["Cheapest: ", ...words(first), `. ${proof}`]);
      lines.push(second ? ["Runner-up: ", ...words(second), `, ${more(second, first)} dearer.`] : [`No other method${better} is as fair.`]);
      const plain = cheapest(usable);
      lines.push([plain === first ? `No method${better} is cheaper.` : `Fairness costs ${more(first, plain)} over the cheapest method${better}, ${data.methods[plain.method].label}.`]);
    } else {
      const known = usable.filter((p) => Number.isFinite(p.values[fairness]));
      const fairest = known.reduce((a, b) => ((b.values[fairness] > a.values[fairness]) === higher ? b : a), known[0]);
      const random = wholeIn(chart, cost).filter((p) => isRandom(p.method, cost) && isFair(p));
      const labels = [...new Set(random.map((p) => data.methods[p.method].label))].join(", ");
      const who = labels ? `Only methods that are no better than random labels are as fair (${labels}). ` : "No method of this run is as fair. ";
      lines.push([who, ...(fairest ? ["The fairest: ", ...words(fairest)] : [])]);
    }
    document.getElementById("answer").replaceChildren(...lines.map((line) => el("p", {}, ...line)));
  };
  const restart = () => {
    const chart = charts[ask.chart.value], cost = chart.costFor(Number(ask.cost.value)), fairness = Number(ask.fairness.value);
    const { higher, decimals } = data.metrics[fairness], scale = 10 ** decimals;
    document.querySelector("#ask .bound").textContent = higher ? "at least" : "at most";
    // Almost full fairness: 95 % of the way from the cheapest setting to the fairest, rounded to the looser side.
    const usable = usableIn(chart, cost).filter((p) => Number.isFinite(p.values[fairness]));
    const first = cheapestOf(usable, cost)?.values[fairness] ?? 0, values = usable.map((p) => p.values[fairness]);
    const best = values.length ? (higher ? Math.max(...values) : Math.min(...values)) : 0;
    const level = (first + 0.95 * (best - first)) * scale;
    ask.level.value = (higher ? Math.floor(level + 1e-6) : Math.ceil(level - 1e-6)) / scale;
    answer();
  };
  // The address holds the question, so that a link leads to its answer.
  const FIELDS = ["chart", "cost", "fairness", "level"];
  const keep = () => history.replaceState(null, "", `#ask?${FIELDS.map((name) => `${name}=${ask[name].value}`).join("&")}`);
  const recall = () => {
    const asked = new URLSearchParams(location.hash.match(/^#ask\?(.*)/)?.[1] ?? "");
    for (const name of FIELDS.slice(0, 3)) {
      if ([...ask[name].options].some((option) => option.value === asked.get(name))) ask[name].value = asked.get(name);
    }
    restart();
    if (asked.has("level")) { ask.level.value = asked.get("level"); answer(); }
  };
  document.getElementById("ask").addEventListener("submit", (event) => event.preventDefault());

  if (charts.length && choose.cost.value !== "" && choose.fairness.value !== "") {
    redraw();
    for (const name of ["cost", "fairness"]) choose[name].addEventListener("change", redraw);
    choose.family.addEventListener("change", dim);
    recall();
    for (const name of FIELDS.slice(0, 3)) ask[name].addEventListener("change", () => { restart(); keep(); });
    ask.level.addEventListener("input", () => { answer(); keep(); });
  }
  addEventListener("scroll", () => charts.forEach((chart) => chart.select(null)), { passive: true });

  // Folds

  document.getElementById("dataset")?.addEventListener("change", ({ target: { value } }) => {
    ofDataset.forEach((apply) => apply(value));
    for (const group of document.querySelectorAll("details.of")) {
      group.hidden = value !== "" && group.dataset.dataset !== value;
      if (value && !group.hidden) group.open = true;
    }
    const of = charts.findIndex((chart) => !value || chart.figure.closest("details.of").dataset.dataset === value);
    if (of >= 0) { ask.chart.value = of; restart(); keep(); }
  });
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1).split("?")[0]);
    for (let fold = target?.closest("details"); fold; fold = fold.parentNode.closest("details")) fold.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
})();
