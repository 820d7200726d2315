// The panel beside the map: a cell, or a point with its neighbours.

import { getJson, indexPath, post, toJson } from "./api.js";
import { bars, facts, fill, isPicture, make, picture, short } from "./charts.js";

export class Details {
  constructor(panel, { onSelect }) {
    Object.assign(this, { panel, onSelect });
  }

  show(info) {
    this.info = info;
    this.turn = null;
    this.panel.replaceChildren(make("p", { class: "hint" }, "Select a cell or a point of the map."));
  }

  /** Shows a cell, unless something else was asked for meanwhile. */
  async cell(cell) {
    const turn = (this.turn = Symbol("cell"));
    const about = await getJson(`${indexPath(this.info.name)}/explore/cells/${cell}`);
    if (turn !== this.turn) return undefined;
    const chart = make("canvas", { class: "chart", role: "img", "aria-label": "Spectrum of the cell" });
    const ids = (about.ids ?? []).slice(0, 60);
    const chip = (id) => make("button", { type: "button", onclick: () => this.onSelect(id) }, String(id));
    fill(this.panel,
      make("h2", {}, `Cell ${cell}`),
      facts([
        ["points", short(about.points)],
        ["bins", about.bins ? short(about.bins.length) : "–"],
        ["axes", about.axes ?? "–"],
        ["largest standard deviation", short(Math.sqrt(about.spectrum[0] ?? 0))],
      ]),
      make("h3", {}, "Spectrum: variance along its axes, logarithmic"),
      chart,
      ids.length ? make("h3", {}, `Points${about.points > ids.length ? ` (${ids.length} of ${short(about.points)})` : ""}`) : null,
      make("div", { class: "chips" }, ...ids.map(chip)),
    );
    const spectrum = about.spectrum.slice(0, 64);
    bars(chart, spectrum, { log: true, labels: spectrum.map((_, i) => String(i + 1)) });
    return about;
  }

  async point(id) {
    const turn = (this.turn = Symbol("point"));
    const path = indexPath(this.info.name);
    const withPictures = isPicture(this.info.dim);
    const columns = this.info.columns.map((column) => column.name);
    const [{ points: [point] }, { results: [{ hits }] }] = await Promise.all([
      post(`${path}/points/get`, { ids: [id], with_vectors: true }),
      post(`${path}/search`, { ids: [id], k: 11, columns, with_vectors: withPictures }),
    ]);
    if (turn !== this.turn) return;
    const others = hits.filter((hit) => hit.id !== id).slice(0, 10);
    fill(this.panel,
      make("h2", {}, `Point ${id}`),
      withPictures ? picture(point.vector, "picture") : null,
      ...this.payload(point.columns),
      make("h3", {}, "Nearest neighbours"),
      this.neighbours(others, withPictures, columns[0]),
      make("h3", {}, "Vector"),
      make("p", { class: "hint" }, `${point.vector.slice(0, 8).map(short).join(", ")}${point.vector.length > 8 ? " …" : ""}`),
    );
  }

  /** Columns as a table; pictures as pictures. */
  payload(columns) {
    if (!columns) return [];
    const rows = Object.entries(columns).map(([name, value]) => [name, image(value) ?? text(value)]);
    return [make("h3", {}, "Columns"), facts(rows)];
  }

  neighbours(hits, withPictures, column) {
    const head = make("tr", {}, withPictures ? make("th", {}, "") : null, make("th", {}, "identifier"), column ? make("th", {}, column) : null, make("th", { class: "number" }, "distance"));
    const row = (hit) => make("tr", {},
      withPictures ? make("td", {}, picture(hit.vector, "thumb")) : null,
      make("td", {}, make("button", { type: "button", class: "link", onclick: () => this.onSelect(hit.id) }, String(hit.id))),
      column ? make("td", {}, text(hit.columns?.[column])) : null,
      make("td", { class: "number" }, short(hit.distance)));
    return make("table", { class: "neighbours" }, make("thead", {}, head), make("tbody", {}, ...hits.map(row)));
  }
}

function text(value) {
  if (value === null || value === undefined) return "–";
  const shown = typeof value === "object" ? toJson(value) : String(value);
  return shown.length > 400 ? `${shown.slice(0, 400)}…` : shown;
}

/** A value that is a picture: PNG or JPEG as hexadecimal bytes, or 28 x 28 grey values. */
function image(value) {
  if (Array.isArray(value) && value.length === 784) return picture(value, "picture");
  if (typeof value !== "string") return null;
  const type = value.startsWith("89504e47") ? "image/png" : value.startsWith("ffd8ff") ? "image/jpeg" : null;
  if (!type) return null;
  const data = Uint8Array.from(value.match(/../g), (pair) => parseInt(pair, 16));
  return make("img", { class: "picture", alt: "", src: URL.createObjectURL(new Blob([data], { type })) });
}
