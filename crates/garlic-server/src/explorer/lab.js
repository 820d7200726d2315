// The query lab: one search, what it looked at, and what it missed.

import { getJson, indexPath, post, typedId } from "./api.js";
import { curve, facts, fill, isPicture, make, picture, short, theme } from "./charts.js";

const $ = (id) => document.getElementById(id);
const SWEEP = [0.5, 0.7, 0.8, 0.9, 0.95, 0.99];
const STEPS = ["the query", "cells that are visited", "bins that are scanned", "candidates", "the answer"];

/** The slider is finer near 1: 0 to 100 is .5 to .999. */
const recallOf = (slider) => Math.round((1 - 0.5 * 10 ** (-(slider / 100) * 2.7)) * 1000) / 1000;

export class Lab {
  constructor(map, { onSelect, sameAxes, onError }) {
    Object.assign(this, { map, onSelect, sameAxes, onError });
    map.overlay = (context) => this.paint(context);
    map.onCell = () => {};
    map.onPoint = (id) => { $("lab-id").value = id; this.source("point"); this.run(); };
    $("lab").addEventListener("submit", (event) => { event.preventDefault(); this.run(); });
    $("lab").addEventListener("change", (event) => { if (event.target.name === "source") this.source(event.target.value); });
    $("recall").addEventListener("input", () => this.slide());
    $("step").addEventListener("input", () => this.step(Number($("step").value)));
    $("sweep").addEventListener("click", () => this.sweep());
    $("lab-random").addEventListener("click", () => this.random());
    this.drawing = new Drawing($("drawing"), () => this.later());
    $("draw-clear").addEventListener("click", () => this.drawing.clear());
    this.slide(false);
  }

  show(info) {
    this.info = info;
    this.trace = null;
    $("draw-choice").hidden = !isPicture(info.dim);
    $("lab-answer").replaceChildren();
    $("steps").replaceChildren();
    $("lab-id").value = "";
    this.source("point");
    $("recall").disabled = false;
  }

  source(name) {
    for (const choice of document.querySelectorAll("[name=source]")) choice.checked = choice.value === name;
    for (const part of document.querySelectorAll("[data-source]")) part.hidden = part.dataset.source !== name;
  }

  slide(runs = true) {
    $("recall-value").value = recallOf($("recall").value).toFixed(3);
    if (runs && this.trace) this.later();
  }

  /** Searches when the slider or the pen has come to rest. */
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), 150);
  }

  async random() {
    try {
      const from = Math.floor(Math.random() * this.info.points);
      const { points } = await getJson(`${indexPath(this.info.name)}/points/scroll?limit=1&columns=[]&from=${from}`);
      if (points.length) $("lab-id").value = points[0].id;
      await this.run();
    } catch (error) { this.onError(error); }
  }

  request() {
    const chosen = document.querySelector("[name=source]:checked").value;
    const asked = { k: Number($("lab-k").value) || 10 };
    if ($("lab-filter").value.trim()) asked.filter = $("lab-filter").value;
    if (chosen === "point") {
      if ($("lab-id").value === "") throw new Error("Give the identifier of a point, or press Any.");
      asked.ids = [typedId($("lab-id").value, this.info.named)];
    } else if (chosen === "draw") {
      asked.vectors = this.drawing.vector(this.scale ?? 255);
    } else {
      asked.vectors = $("lab-vector").value.split(/[\s,;[\]]+/).filter((part) => part !== "").map(Number);
      if (asked.vectors.some(Number.isNaN)) throw new Error("The vector has something that is no number.");
    }
    return asked;
  }

  async run() {
    try {
      const recall = recallOf($("recall").value);
      const turn = (this.turn = Symbol("search"));
      const trace = await post(`${indexPath(this.info.name)}/explore/trace`, { ...this.request(), recall });
      if (turn !== this.turn) return;
      await this.sameAxes(trace.axes);
      this.trace = trace;
      await this.answer();
      this.step(Number($("step").value));
      const places = [this.trace.place, ...this.trace.hits.map((hit) => hit.place), ...(this.trace.candidates ?? []).slice(0, 200).map((c) => c.place)];
      if (this.map.data) this.map.frame(places.filter(Boolean));
      this.onError(null);
    } catch (error) { this.onError(error); }
  }

  /** Identifiers that exact search finds and the search does not. */
  missed() {
    const found = new Set(this.trace.hits.map((hit) => hit.id));
    return (this.trace.exact.hits ?? []).filter((hit) => !found.has(hit.id));
  }

  async answer() {
    const { trace } = this;
    const exact = trace.exact.hits ?? [];
    const missed = new Set(this.missed().map((hit) => hit.id));
    const pictures = await this.pictures([...exact, ...trace.hits].map((hit) => hit.id));
    const list = exact.length ? exact : trace.hits;
    const row = (hit, rank) => make("tr", { class: missed.has(hit.id) ? "missed" : null },
      make("td", { class: "number" }, String(rank + 1)),
      pictures.has(hit.id) ? make("td", {}, picture(pictures.get(hit.id), "thumb")) : null,
      make("td", {}, make("button", { type: "button", class: "link", onclick: () => this.onSelect(hit.id) }, String(hit.id))),
      make("td", { class: "number" }, short(hit.distance)),
      make("td", { class: missed.has(hit.id) ? "missed" : "found" }, missed.has(hit.id) ? "missed" : "found"));
    const { stats } = trace;
    fill($("lab-answer"),
      make("h3", {}, "Work"),
      facts([
        ["found of the true neighbours", exact.length ? `${exact.length - missed.size} of ${exact.length}` : "–"],
        ["time", `${short(trace.micros)} µs`],
        ["time of exact search", trace.exact.micros ? `${short(trace.exact.micros)} µs` : "–"],
        ["work, in distances", short(stats.distance_equivalents)],
        ["cells compared", short(stats.cells_scored)],
        ["cells visited", short(stats.cells_projected)],
        ["bins ordered", short(stats.bins_ordered)],
        ["codes scanned", short(stats.codes)],
        ["graph: points expanded", short(stats.hops)],
        ["exact distances", short(stats.candidates)],
      ]),
      make("h3", {}, "True neighbours"),
      trace.exact.error ? make("p", { class: "hint" }, trace.exact.error) : null,
      make("table", { class: "hits" }, make("tbody", {}, ...list.map(row))),
    );
  }

  async pictures(ids) {
    if (!isPicture(this.info.dim)) return new Map();
    const all = [...new Set(ids)].slice(0, 100);
    const { points } = await post(`${indexPath(this.info.name)}/points/get`, { ids: all, columns: [], with_vectors: true });
    if (points.length) this.scale = Math.max(...points[0].vector) > 1.5 ? 255 : 1;
    return new Map(points.map((point) => [point.id, point.vector]));
  }

  step(step) {
    $("step-name").value = STEPS[step];
    this.shown = step;
    const { trace } = this;
    if (trace) {
      const words = [
        `The query is compared with ${short(trace.stats.cells_scored)} cells.`,
        { graph: `The search follows the neighbour graph: ${short(trace.stats.hops)} points expanded, ${short(trace.stats.edges)} edges read.`,
          everything: "The search reads every point: that is cheapest here, or nothing less meets the target.",
          exact: "Exact search." }[trace.method]
          ?? `${trace.cells.length} cells are visited, nearest first.`,
        trace.method === "bins"
          ? `${short(sum(trace.cells, "bins_in_reach"))} of their ${short(trace.stats.bins_ordered)} bins are within reach, with ${short(trace.stats.codes)} codes that are scanned.`
          : "",
        `${short(trace.candidates.length)} candidates have the best codes; their exact distances are computed.`,
        `The nearest ${trace.hits.length} are the answer; ${this.missed().length} true neighbours are missed.`,
      ];
      $("steps").replaceChildren(make("p", { class: "hint" }, words.slice(0, step + 1).join(" ")));
    }
    this.map.draw();
  }

  paint(context) {
    const { trace, map } = this;
    if (!trace || !map.data) return;
    if (this.shown >= 1) this.paintCells(context);
    if (this.shown >= 2) map.paintBins(context, trace.cells.flatMap((visited) => visited.reach ?? []));
    if (this.shown >= 3) {
      context.fillStyle = "#e08214";
      for (const candidate of trace.candidates) {
        if (!candidate.place) continue;
        const [px, py] = map.camera.toScreen(candidate.place);
        context.fillRect(px - 2, py - 2, 4, 4);
      }
    }
    if (this.shown >= 4) {
      for (const hit of trace.hits) if (hit.place) map.ring(context, hit.place, 6, theme("--good"), 2);
      for (const hit of this.missed()) if (hit.place) map.ring(context, hit.place, 9, theme("--bad"), 2);
    }
    const [px, py] = map.camera.toScreen(trace.place);
    context.strokeStyle = theme("--ink");
    context.lineWidth = 2.5;
    context.beginPath();
    for (const [dx, dy] of [[8, 0], [0, 8]]) {
      context.moveTo(px - dx, py - dy);
      context.lineTo(px + dx, py + dy);
    }
    context.stroke();
  }

  /** The visited cells, with their order. */
  paintCells(context) {
    const { trace, map } = this;
    context.font = "bold 12px system-ui";
    trace.cells.forEach((visited, order) => {
      const [px, py] = map.cells.path(context, visited.cell, map.camera);
      context.strokeStyle = theme("--accent");
      context.lineWidth = order < 3 ? 3 : 1.5;
      context.stroke();
      if (order >= 30) return;
      context.fillStyle = theme("--ink");
      context.fillText(String(order + 1), px + 3, py - 3);
    });
  }

  /** The same query with several recall targets. */
  async sweep() {
    try {
      const asked = this.request();
      const points = [];
      for (const recall of SWEEP) {
        const trace = await post(`${indexPath(this.info.name)}/explore/trace`, { ...asked, recall });
        const found = new Set(trace.hits.map((hit) => hit.id));
        const exact = trace.exact.hits ?? [];
        const share = exact.filter((hit) => found.has(hit.id)).length / Math.max(1, exact.length);
        points.push({ x: trace.stats.distance_equivalents, y: share, label: String(recall), micros: trace.micros });
      }
      const chart = make("canvas", { class: "chart", role: "img", "aria-label": "Share found against work" });
      const row = (p) => make("tr", {}, make("td", { class: "number" }, p.label), make("td", { class: "number" }, short(p.x)), make("td", { class: "number" }, `${short(p.micros)} µs`), make("td", { class: "number" }, p.y.toFixed(2)));
      const head = ["target", "work", "time", "found"].map((name) => make("th", { class: "number" }, name));
      $("lab-answer").replaceChildren(
        make("h3", {}, "This query at several targets"), chart,
        make("table", { class: "sweep" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...points.map(row))),
        make("p", { class: "hint" }, "A target is about the mean of many queries; one query may find more or fewer."));
      curve(chart, points, "work in distances", "found");
    } catch (error) { this.onError(error); }
  }
}

const sum = (list, key) => list.reduce((all, entry) => all + (entry[key] ?? 0), 0);

/** A drawing of 28 x 28 grey values. */
class Drawing {
  constructor(canvas, onChange) {
    Object.assign(this, { canvas, onChange });
    this.pen = [14, 14];
    let last = null;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [((event.clientX - box.left) / box.width) * 28, ((event.clientY - box.top) / box.height) * 28];
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      last = at(event);
      this.dot(last);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      // A fast pen skips pixels: draw those between, too.
      const now = at(event), steps = Math.ceil(2 * Math.hypot(now[0] - last[0], now[1] - last[1]));
      for (let i = 1; i <= steps; i++) this.dot(now.map((v, axis) => last[axis] + ((v - last[axis]) * i) / steps));
      last = now;
    });
    canvas.addEventListener("pointerup", () => { last = null; this.onChange(); });
    canvas.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      if (moves[event.key]) this.pen = this.pen.map((v, i) => Math.min(27, Math.max(0, v + moves[event.key][i])));
      else if (event.key !== " ") return;
      event.preventDefault();
      if (event.key === " " || event.shiftKey) { this.dot(this.pen); this.onChange(); }
      this.paint(true);
    });
    canvas.addEventListener("blur", () => this.paint());
    this.clear();
  }

  clear() {
    this.values = new Float32Array(784);
    this.paint();
  }

  dot([x, y]) {
    for (let row = 0; row < 28; row++) {
      for (let column = 0; column < 28; column++) {
        const away = Math.hypot(column + 0.5 - x, row + 0.5 - y);
        const ink = Math.max(0, Math.min(1, 1.7 - away));
        const at = 28 * row + column;
        this.values[at] = Math.max(this.values[at], ink);
      }
    }
    this.paint();
  }

  paint(withPen = false) {
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(28, 28);
    this.values.forEach((value, i) => {
      const grey = Math.round(255 * value);
      image.data.set([grey, grey, grey, 255], 4 * i);
    });
    if (withPen) image.data.set([196, 155, 224, 255], 4 * (28 * this.pen[1] + this.pen[0]));
    context.putImageData(image, 0, 0);
  }

  vector(scale) {
    return Array.from(this.values, (value) => Math.round(value * 255) * (scale / 255));
  }
}
