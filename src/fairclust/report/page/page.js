"use strict";
// This script adds sorting, filters, and charts for other metrics; the page is complete without it. The charts follow
// the rules of report/charts.py, which draws those for the first metrics.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
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

  const numeric = (text) => {
    const t = text.replace(/ ±.*|, best.*/, "").replace(/[,\s%+]/g, "").replace("−", "-").replace(/\(.*/, "");
    return t === "∞" ? Infinity : t === "" || t === "–" ? NaN : Number(t);
  };
  const sortBy = (table, th) => {
    const column = th.cellIndex;
    const down = th.getAttribute("aria-sort") === "ascending";
    const isNumber = th.classList.contains("n");
    const body = table.tBodies[0];
    const value = (row) => {
      const text = row.cells[column].textContent.trim();
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
  for (const table of document.querySelectorAll("table.data")) {
    const head = [...table.tHead.rows[0].cells];
    for (const th of head) {
      const button = el("button", { type: "button" }, th.textContent);
      button.addEventListener("click", () => sortBy(table, th));
      th.replaceChildren(button);
    }
    const filters = head.filter((th) => "filter" in th.dataset).map((th) => {
      const column = th.cellIndex;
      const values = [...new Set([...table.tBodies[0].rows].map((row) => row.cells[column].textContent.trim()))];
      return { th, column, values };
    }).filter(({ values }) => values.length > 1);
    if (!filters.length) continue;
    const count = el("span", { className: "note" });
    count.setAttribute("role", "status");
    const chosen = new Map();
    const apply = () => {
      let left = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = [...chosen].some(([column, wanted]) => wanted && row.cells[column].textContent.trim() !== wanted);
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
      form.append(el("label", {}, `${th.textContent} `, select));
    }
    form.append(count);
    table.closest(".scroll").before(form);
  }

  // Leaderboards

  const boards = [...document.querySelectorAll(".board")];
  const pick = { cost: document.getElementById("board-cost"), fairness: document.getElementById("board-fairness") };
  if (boards.length) {
    const home = boards[0].parentNode;
    document.getElementById("more-boards")?.remove();
    boards.forEach((board) => home.append(board));
    const show = () => {
      let any = false;
      for (const board of boards) {
        board.hidden = board.dataset.cost !== pick.cost.value || board.dataset.fairness !== pick.fairness.value;
        any ||= !board.hidden;
      }
      document.getElementById("no-board").hidden = any;
    };
    pick.cost.value = boards[0].dataset.cost;
    pick.fairness.value = boards[0].dataset.fairness;
    pick.cost.addEventListener("change", show);
    pick.fairness.addEventListener("change", show);
    show();
  }

  // Charts

  const show = (metric, value) => {
    if (Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return "∞";
    const digits = data.metrics[metric].decimals;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };
  const ticks = (low, high, about = 5) => {
    const raw = (high - low) / about;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5].map((m) => m * power).find((s) => s >= raw * 0.9999) ?? 10 * power;
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); i++) found.push(i * step);
    return found;
  };
  const short = (value) => `${Number(value.toPrecision(6))}`;
  const tickText = (value) => {
    const size = Math.abs(value);
    if (size >= 1e6) return `${short(value / 1e6)}M`;
    if (size >= 1e4) return `${short(value / 1e3)}k`;
    return size > 1e-12 ? short(value) : "0";
  };
  const pareto = (points, higher) => {
    const gain = (p) => (Number.isFinite(p.cost) && Number.isFinite(p.fair) ? (higher ? p.fair : -p.fair) : -Infinity);
    const on = new Set();
    let best = -Infinity, at = Infinity;
    for (const p of [...points].sort((a, b) => a.cost - b.cost || gain(b) - gain(a))) {
      const mine = gain(p);
      if (mine > best || (mine === best && p.cost === at && mine > -Infinity)) { on.add(p); best = mine; at = p.cost; }
    }
    return on;
  };
  const min = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
  const max = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  const icon = (m) => {
    const { colour, shape } = data.methods[m];
    const svg = inSvg("svg", { class: "key", viewBox: "-7 -7 14 14", "aria-hidden": "true" });
    svg.append(inSvg("use", { href: `#m${shape}`, class: `p c${colour} on` }));
    return svg;
  };

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.svg = figure.querySelector("svg.front");
      [this.left, this.right, this.top, this.bottom] = this.svg.dataset.plot.split(",").map(Number);
      this.points = [...this.svg.querySelectorAll(".p")].map((mark) => ({
        mark,
        method: Number(mark.dataset.m),
        setting: mark.dataset.s,
        seed: mark.dataset.r,
        values: mark.dataset.v.split(",").map((v) => (v === "" ? NaN : v === "inf" ? Infinity : Number(v))),
      }));
      this.current = null;
      // The browser's tooltip would cover ours.
      this.svg.querySelectorAll(".p > title").forEach((title) => title.remove());
      this.svg.addEventListener("pointermove", (event) => this.point(event));
      this.svg.addEventListener("pointerdown", (event) => this.point(event));
      this.svg.addEventListener("pointerleave", () => this.select(null));
      this.svg.addEventListener("blur", () => this.select(null));
      this.svg.addEventListener("keydown", (event) => this.key(event));
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
        const away = (p.x - x) ** 2 + (p.y - y) ** 2 - (p.mark.classList.contains("on") ? 1 : 0);
        if (away < least) { best = p; least = away; }
      }
      this.select(best);
    }

    key(event) {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (event.key === "Escape") this.select(null);
      if (!step && event.key !== "Home" && event.key !== "End") return;
      event.preventDefault();
      const front = this.visible.filter((p) => p.mark.classList.contains("on"));
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
      const rows = [p.setting, `seed ${p.seed}`, `${data.metrics[this.cost].label} ${show(this.cost, p.cost)}`,
        `${data.metrics[this.fairness].label} ${show(this.fairness, p.fair)}`];
      const here = this.visible.filter((q) => q.method !== p.method && Math.abs(q.x - p.x) < 2 && Math.abs(q.y - p.y) < 2);
      const others = [...new Set(here.map((q) => data.methods[q.method].label))];
      tip.replaceChildren(el("b", {}, data.methods[p.method].label), rows.filter(Boolean).join(" · "),
        ...(others.length ? [el("i", {}, `In the same place: ${others.join(", ")}`)] : []));
      const box = p.mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
      const x = Math.max(6, Math.min(innerWidth - own.width - 6, box.x + box.width / 2 - own.width / 2));
      const above = box.y - own.height - 8;
      tip.style.left = `${x}px`;
      tip.style.top = `${above > 60 ? above : box.y + box.height + 8}px`;
    }

    draw(wanted, fairness, whole) {
      this.select(null);
      // Graphs have no sum of squares, so the first cost that has values is shown.
      const has = (i) => this.points.some((p) => Number.isFinite(p.values[i]));
      const cost = has(wanted) ? wanted : [...Array(data.costs).keys()].find(has) ?? wanted;
      Object.assign(this, { cost, fairness });
      const { higher, bounded, label } = data.metrics[fairness];
      for (const p of this.points) Object.assign(p, { cost: p.values[cost], fair: p.values[fairness] });
      const finite = this.points.filter((p) => Number.isFinite(p.cost) && Number.isFinite(p.fair));
      const on = pareto(finite, higher);
      const ofMethod = Map.groupBy ? Map.groupBy(finite, (p) => p.method)
        : finite.reduce((m, p) => m.set(p.method, [...(m.get(p.method) ?? []), p]), new Map());
      const settings = this.points.reduce((m, p) => m.set(p.method, (m.get(p.method) ?? 0) + 1), new Map());
      const several = [...on].filter((p) => settings.get(p.method) > 1);
      const reach = several.length ? several : [...on];
      const low = min(finite.map((p) => p.cost)), high = max(reach.map((p) => p.cost));
      const highest = max(finite.map((p) => p.cost));
      let x1 = whole ? highest : Math.min(highest, Math.max(low + 1.6 * (high - low), 1.1 * low));
      const shown = finite.filter((p) => p.cost <= x1).map((p) => p.fair);
      let y0 = min(shown), y1 = max(shown);
      if (!bounded && !whole) y1 = Math.min(y1, Math.max(1.15 * max([...on].map((p) => p.fair)), y0 + 1e-3));
      const xPad = 0.05 * (x1 - low) || 0.05 * Math.abs(low) || 1, yPad = 0.06 * (y1 - y0) || 0.05;
      const x0 = low - xPad;
      x1 += xPad; y0 -= yPad; y1 += yPad;
      const px = (v) => Math.round(10 * (this.left + (v - x0) / (x1 - x0) * (this.right - this.left))) / 10;
      const py = (v) => Math.round(10 * (this.bottom - (v - y0) / (y1 - y0) * (this.bottom - this.top))) / 10;
      const own = new Set();
      for (const points of ofMethod.values()) pareto(points, higher).forEach((p) => own.add(p));
      const within = new Set(finite);
      for (const p of this.points) {
        p.inside = within.has(p) && p.cost <= x1 && p.fair <= y1;
        p.mark.toggleAttribute("display", false);
        if (p.inside) {
          Object.assign(p, { x: px(p.cost), y: py(p.fair) });
          p.mark.setAttribute("transform", `translate(${p.x} ${p.y})`);
        } else p.mark.setAttribute("display", "none");
        p.mark.classList.remove("on", "own", "off");
        p.mark.classList.add(on.has(p) ? "on" : own.has(p) ? "own" : "off");
      }
      const rank = (p) => (on.has(p) ? 2 : own.has(p) ? 1 : 0);
      this.svg.querySelector(".points").append(...[...this.points].sort((a, b) => rank(a) - rank(b)).map((p) => p.mark));
      const axes = this.svg.querySelector(".axes"), empty = !finite.length;
      axes.replaceChildren();
      for (const v of empty ? [] : ticks(x0, x1)) {
        axes.append(inSvg("path", { d: `M${px(v)} ${this.top}V${this.bottom}` }),
          inSvg("text", { x: px(v), y: this.bottom + 15, class: "x" }, tickText(v)));
      }
      for (const v of empty ? [] : ticks(y0, y1)) {
        axes.append(inSvg("path", { d: `M${this.left} ${py(v)}H${this.right}` }),
          inSvg("text", { x: this.left - 6, y: py(v) + 4, class: "y" }, tickText(v)));
      }
      this.svg.querySelector(".xl").textContent = `${data.metrics[cost].label} (lower is better)`;
      this.svg.querySelector(".yl").textContent = `${label} (${higher ? "higher" : "lower"} is better)`;
      const byCost = (points) => points.filter((p) => p.inside).sort((a, b) => a.cost - b.cost);
      const lines = this.svg.querySelector(".lines");
      lines.replaceChildren();
      for (const [method, points] of ofMethod) {
        const mine = byCost(points.filter((p) => own.has(p)));
        if (mine.length < 2) continue;
        lines.append(inSvg("polyline", { class: `l c${data.methods[method].colour}`, "data-m": method,
          points: mine.map((p) => `${p.x},${p.y}`).join(" ") }));
      }
      const front = byCost([...on]), base = higher ? this.bottom : this.top;
      const steps = front.map((p, i) => (i ? `H${p.x}V${p.y}` : `M${p.x} ${base}V${p.y}`)).join("");
      this.svg.querySelector(".stairs").setAttribute("d", front.length ? `${steps}H${this.right}V${base}Z` : "");
      this.svg.setAttribute("aria-label", `${this.figure.querySelector("figcaption").textContent}: cost and fairness of ` +
        `${this.points.filter((p) => p.inside).length} settings`);
      this.words(byCost([...on]), [...on].sort((a, b) => a.cost - b.cost));
    }

    words(shown, front) {
      const figure = this.figure, methods = [...new Set(shown.map((p) => p.method))];
      const keys = methods.map((m) => el("span", {}, icon(m), ` ${data.methods[m].label}`));
      figure.querySelector(".on-front").replaceChildren("On the front: ", ...(keys.length ? keys : ["nothing has a value"]));
      const gone = new Map();
      for (const p of this.points) if (!p.inside) gone.set(p.method, (gone.get(p.method) ?? 0) + 1);
      const parts = [...gone].map(([m, n]) => `${data.methods[m].label} (${n})`);
      figure.querySelector("p.note").textContent =
        parts.length ? `Beyond the edges, or without a finite value: ${parts.join(", ")}.` : "";
      const table = figure.querySelector("table");
      table.tHead.rows[0].cells[3].textContent = data.metrics[this.cost].label;
      table.tHead.rows[0].cells[4].textContent = data.metrics[this.fairness].label;
      table.tBodies[0].replaceChildren(...front.map((p) => el("tr", {},
        el("td", {}, data.methods[p.method].label), el("td", {}, p.setting || "–"), el("td", { className: "n" }, p.seed),
        el("td", { className: "n" }, show(this.cost, p.cost)), el("td", { className: "n" }, show(this.fairness, p.fair)))));
    }

    dim(wanted) {
      this.select(null);
      for (const p of this.points) {
        p.dimmed = !wanted(p.method);
        p.mark.classList.toggle("dim", p.dimmed);
      }
      for (const line of this.svg.querySelectorAll(".l")) line.classList.toggle("dim", !wanted(Number(line.dataset.m)));
    }
  }

  const charts = [...document.querySelectorAll("figure")].filter((f) => f.querySelector("svg.front")).map((f) => new Chart(f));
  const choose = { cost: document.getElementById("cost"), fairness: document.getElementById("fairness"),
    family: document.getElementById("family"), whole: document.getElementById("whole") };
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
    charts.forEach((chart) => chart.draw(cost, fairness, choose.whole.checked));
    dim();
  };
  if (charts.length && choose.cost.value !== "" && choose.fairness.value !== "") {
    redraw();
    choose.cost.addEventListener("change", redraw);
    choose.fairness.addEventListener("change", redraw);
    choose.whole.addEventListener("change", redraw);
    choose.family.addEventListener("change", dim);
  }
  addEventListener("scroll", () => charts.forEach((chart) => chart.select(null)), { passive: true });
})();
