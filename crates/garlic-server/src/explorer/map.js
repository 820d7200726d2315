// A map of cells and points that is moved and zoomed.

import { getBinary, getJson, indexPath } from "./api.js";
import { fit, KINDS, ramp, theme } from "./charts.js";

const POINTS = 20000;      // Points that are drawn at a time.
const CELL_REACH = 2;      // Standard deviations of an ellipse.
const FETCH_AFTER = 120;   // Milliseconds without movement before points are asked for.

export class MapView {
  constructor(canvas, { onCell, onPoint, onError }) {
    Object.assign(this, { canvas, onCell, onPoint, onError });
    this.showCells = this.showPoints = true;
    this.column = "";
    this.overlay = null;
    this.kinds = new Map();
    this.colours = new Map();
    this.clear();
    // A map that nobody has moved goes on to show all.
    new ResizeObserver(() => (this.isMoved ? this.draw() : this.showAll())).observe(canvas);
    this.listen();
  }

  clear() {
    this.data = null;
    this.points = { floats: new Float32Array(), ids: [], values: null };
    this.selectedCell = this.selectedPlace = null;
    this.bins = [];
    this.view = { x: 0, y: 0, scale: 1 };
    this.isMoved = false;
  }

  async load(info) {
    this.clear();
    this.info = info;
    this.data = await getJson(`${indexPath(info.name)}/explore/map`);
    const density = ([, , a, b, , n]) => Math.log((n + 0.5) / (Math.max(a, 1e-6) * Math.max(b, 1e-6)));
    const all = this.data.cells.map(density).sort((a, b) => a - b);
    const [low, high] = [all[Math.floor(all.length * 0.05)], all[Math.floor((all.length - 1) * 0.95)]];
    this.shade = (cell) => (high > low ? (density(cell) - low) / (high - low) : 0.5);
    this.order = this.data.cells.map((_, i) => i).sort((i, j) => this.size(j) - this.size(i));
    this.showAll();
  }

  size(cell) {
    const [, , a, b] = this.data.cells[cell];
    return a * b;
  }

  showAll() {
    if (!this.data) return;
    const [left, top, right, bottom] = this.data.bounds;
    const { width, height } = this.canvas.getBoundingClientRect();
    const scale = 0.9 * Math.min(width / Math.max(right - left, 1e-6), height / Math.max(bottom - top, 1e-6));
    this.view = { x: (left + right) / 2, y: (top + bottom) / 2, scale: scale || 1 };
    this.moved();
    this.isMoved = false;
  }

  /** Moves so that places are in view. */
  frame(places) {
    const xs = places.map((p) => p[0]), ys = places.map((p) => p[1]);
    const { width, height } = this.canvas.getBoundingClientRect();
    const wide = Math.max(...xs) - Math.min(...xs), tall = Math.max(...ys) - Math.min(...ys);
    const [left, top, right, bottom] = this.data.bounds;
    const least = 0.05 * Math.hypot(right - left, bottom - top);
    this.view = {
      x: (Math.max(...xs) + Math.min(...xs)) / 2,
      y: (Math.max(...ys) + Math.min(...ys)) / 2,
      scale: 0.8 * Math.min(width / Math.max(wide, least), height / Math.max(tall, least)),
    };
    this.moved();
  }

  zoom(factor, at) {
    const { width, height } = this.canvas.getBoundingClientRect();
    const [px, py] = at ?? [width / 2, height / 2];
    const before = this.toMap(px, py);
    this.view.scale *= factor;
    const after = this.toMap(px, py);
    this.view.x += before[0] - after[0];
    this.view.y += before[1] - after[1];
    this.moved();
  }

  toScreen([x, y]) {
    const { width, height } = this.canvas.getBoundingClientRect();
    return [(x - this.view.x) * this.view.scale + width / 2, (this.view.y - y) * this.view.scale + height / 2];
  }

  toMap(px, py) {
    const { width, height } = this.canvas.getBoundingClientRect();
    return [(px - width / 2) / this.view.scale + this.view.x, this.view.y - (py - height / 2) / this.view.scale];
  }

  moved() {
    this.isMoved = true;
    this.draw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fetchPoints(), FETCH_AFTER);
  }

  async fetchPoints() {
    if (!this.data || !this.showPoints) return;
    const { width, height } = this.canvas.getBoundingClientRect();
    const [left, bottom] = this.toMap(0, 0), [right, top] = this.toMap(width, height);
    const asked = new URLSearchParams({ left, right, top, bottom, limit: POINTS });
    if (this.column) asked.set("column", JSON.stringify(this.column));
    this.abort?.abort();
    this.abort = new AbortController();
    try {
      const answer = await getBinary(`${indexPath(this.info.name)}/explore/points?${asked}`, this.abort.signal);
      const ids = answer.about.ids ?? Array.from(answer.numbers, Number);
      this.points = { floats: answer.floats, ids, values: answer.about.values ?? null };
      this.canvas.dataset.points = ids.length;
      this.kinds = new Map();
      for (const value of this.points.values ?? []) this.kindOf(value);
      this.onKinds?.(this.kinds);
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.onError(error);
    }
  }

  setColumn(column) {
    this.column = column;
    this.fetchPoints();
  }

  /** The colour of a value: the same one as long as the page is open. */
  kindOf(value) {
    const text = String(value);
    if (!this.colours.has(text)) this.colours.set(text, KINDS[this.colours.size % KINDS.length]);
    this.kinds.set(text, this.colours.get(text));
    return this.colours.get(text);
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = null;
      this.paint();
    });
  }

  paint() {
    const { context, width, height } = fit(this.canvas);
    if (!this.data || !width) return;
    if (this.showCells) for (const cell of this.order) this.paintCell(context, cell, width, height);
    if (this.showPoints) this.paintPoints(context, width, height);
    for (const [x, y, n] of this.bins) {
      const [px, py] = this.toScreen([x, y]);
      const side = 2 + Math.min(8, Math.sqrt(n));
      context.strokeStyle = theme("--accent");
      context.strokeRect(px - side / 2, py - side / 2, side, side);
    }
    if (this.selectedPlace) this.ring(context, this.selectedPlace, 8, theme("--accent"), 3);
    this.overlay?.(context, this);
  }

  path(context, cell) {
    const [x, y, a, b, angle] = this.data.cells[cell];
    const [px, py] = this.toScreen([x, y]);
    const scale = CELL_REACH * this.view.scale;
    context.beginPath();
    context.ellipse(px, py, Math.max(1, a * scale), Math.max(1, b * scale), -angle, 0, 2 * Math.PI);
    return [px, py, a * scale];
  }

  paintCell(context, cell, width, height) {
    const [px, py, radius] = this.path(context, cell);
    if (px + radius < 0 || px - radius > width || py + radius < 0 || py - radius > height) return;
    const shade = this.shade(this.data.cells[cell]);
    context.fillStyle = ramp(shade, 0.16);
    context.fill();
    context.lineWidth = cell === this.selectedCell ? 3 : 1;
    context.strokeStyle = cell === this.selectedCell ? theme("--accent") : ramp(shade, 0.8);
    context.stroke();
  }

  paintPoints(context, width, height) {
    const { floats, values } = this.points;
    const plain = theme("--point");
    const count = floats.length / 2;
    const side = count > 5000 ? 1.6 : count > 800 ? 2.5 : 4;
    context.fillStyle = plain;
    const { x, y, scale } = this.view;
    for (let i = 0; i < count; i++) {
      const px = (floats[2 * i] - x) * scale + width / 2;
      const py = (y - floats[2 * i + 1]) * scale + height / 2;
      if (px < 0 || py < 0 || px > width || py > height) continue;
      if (values) context.fillStyle = this.kindOf(values[i]);
      context.fillRect(px - side / 2, py - side / 2, side, side);
    }
  }

  ring(context, place, radius, colour, width = 2) {
    const [px, py] = this.toScreen(place);
    context.beginPath();
    context.arc(px, py, radius, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }

  /** What is at a place of the screen: the nearest point within some pixels, or the smallest cell around it. */
  pick(px, py) {
    const { floats, ids } = this.points;
    let best = this.showPoints ? 10 : 0, found = -1;
    for (let i = 0; i < ids.length; i++) {
      const [x, y] = this.toScreen([floats[2 * i], floats[2 * i + 1]]);
      const away = Math.hypot(x - px, y - py);
      if (away < best) [best, found] = [away, i];
    }
    const spread = this.view.scale * Math.hypot(this.data.bounds[2] - this.data.bounds[0], this.data.bounds[3] - this.data.bounds[1]);
    const { width, height } = this.canvas.getBoundingClientRect();
    // Zoomed out, a click is for a cell.
    const isClose = spread > 2 * Math.hypot(width, height) || !this.showCells;
    if (found >= 0 && isClose) {
      this.selectPoint([floats[2 * found], floats[2 * found + 1]]);
      this.onPoint(ids[found]);
      return;
    }
    const at = this.toMap(px, py);
    const inside = this.order.filter((cell) => this.contains(cell, at));
    if (inside.length && this.showCells) this.selectCell(inside[inside.length - 1]);
  }

  contains(cell, [x, y]) {
    const [cx, cy, a, b, angle] = this.data.cells[cell];
    const [dx, dy] = [x - cx, y - cy];
    const [c, s] = [Math.cos(angle), Math.sin(angle)];
    const [u, v] = [(dx * c + dy * s) / Math.max(a, 1e-9), (dy * c - dx * s) / Math.max(b, 1e-9)];
    return Math.hypot(u, v) <= CELL_REACH;
  }

  selectCell(cell) {
    this.selectedCell = cell;
    this.selectedPlace = null;
    this.bins = [];
    this.draw();
    this.onCell(cell);
  }

  selectPoint(place) {
    this.selectedPlace = place;
    this.draw();
  }

  listen() {
    const { canvas } = this;
    const pointers = new Map();
    let drag = null, pinch = 0;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const apart = () => {
      const [a, b] = [...pointers.values()];
      return Math.hypot(a[0] - b[0], a[1] - b[1]);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, place(event));
      drag = { from: place(event), moved: false };
      if (pointers.size === 2) pinch = apart();
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!pointers.has(event.pointerId)) return;
      const before = pointers.get(event.pointerId), now = place(event);
      pointers.set(event.pointerId, now);
      if (pointers.size === 2) {
        const distance = apart();
        this.zoom(distance / Math.max(pinch, 1), now);
        pinch = distance;
        drag = null;
      } else if (drag) {
        drag.moved ||= Math.hypot(now[0] - drag.from[0], now[1] - drag.from[1]) > 4;
        if (!drag.moved) return;
        this.view.x -= (now[0] - before[0]) / this.view.scale;
        this.view.y += (now[1] - before[1]) / this.view.scale;
        this.moved();
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      pointers.delete(event.pointerId);
      if (drag && !drag.moved && this.data) this.pick(...place(event));
      drag = null;
    });
    canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), place(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const { width, height } = canvas.getBoundingClientRect();
      const step = 60 / this.view.scale;
      const keys = {
        ArrowLeft: () => (this.view.x -= step),
        ArrowRight: () => (this.view.x += step),
        ArrowUp: () => (this.view.y += step),
        ArrowDown: () => (this.view.y -= step),
        "+": () => this.zoom(1.4),
        "=": () => this.zoom(1.4),
        "-": () => this.zoom(1 / 1.4),
        0: () => this.showAll(),
        Enter: () => this.pick(width / 2, height / 2),
      };
      if (!keys[event.key] || !this.data) return;
      event.preventDefault();
      keys[event.key]();
      this.moved();
    });
  }
}
