// A map of cells and points that is moved and zoomed.

import { getJson, indexPath } from "./api.js";
import { Camera } from "./camera.js";
import { Cells } from "./cells.js";
import { fit, theme } from "./charts.js";
import { Points } from "./points.js";

const REST_AFTER = 120;    // Milliseconds without movement before everything is drawn in full.
const CLICK_REACH = 10;    // Pixels.
const MANY = 800;          // With more points in view, a click is for a cell.

export class MapView {
  constructor(canvas, { onCell, onPoint, onError, onKinds }) {
    Object.assign(this, { canvas, onCell, onPoint, onError, onKinds });
    this.showCells = this.showPoints = true;
    this.column = "";
    this.overlay = null;
    this.camera = new Camera();
    this.points = new Points({
      changed: () => { this.onKinds?.(this.points.names); this.draw(); this.onPieces?.(); },
      stale: () => this.load(this.info).catch(this.onError),
      failed: (error) => this.onError(error),
    });
    this.clear();
    // A map that nobody has moved goes on to show all.
    new ResizeObserver(() => (this.isPlaced ? this.draw() : this.showAll())).observe(canvas);
    this.listen();
  }

  clear() {
    this.data = this.cells = null;
    this.selectedCell = this.selectedPlace = null;
    this.bins = [];
    this.isPlaced = false;
  }

  /** Loads a map, and then its points, for which it does not wait. */
  async load(info) {
    const turn = (this.turn = Symbol("map"));
    this.points.clear();
    this.clear();
    this.info = info;
    const data = await getJson(`${indexPath(info.name)}/explore/map`);
    // Another index was chosen meanwhile.
    if (turn !== this.turn) return;
    this.data = data;
    this.cells = new Cells(this.data.cells);
    this.onLoaded?.();
    this.showAll();
    this.points.load(info, this.data, this.column);
  }

  /** Shows the same as another map. */
  share({ info, data, cells, points }) {
    Object.assign(this, { info, data, cells, points });
  }

  /** Colours the points by a column. */
  setColumn(column) {
    this.column = column;
    if (this.data) this.points.load(this.info, this.data, column);
  }

  measure() {
    const { width, height } = this.canvas.getBoundingClientRect();
    Object.assign(this.camera, { width, height });
  }

  showAll() {
    if (!this.data) return;
    this.measure();
    this.camera.show(this.data.bounds, 0.9);
    this.moved();
    this.isPlaced = false;
  }

  /** Moves so that places are in view. */
  frame(places) {
    const xs = places.map((p) => p[0]), ys = places.map((p) => p[1]);
    const [left, top, right, bottom] = this.data.bounds;
    const least = 0.05 * Math.hypot(right - left, bottom - top);
    const grown = (values) => {
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const more = Math.max(0, least - (high - low)) / 2;
      return [low - more, high + more];
    };
    const [[x0, x1], [y0, y1]] = [grown(xs), grown(ys)];
    this.measure();
    this.camera.show([x0, y0, x1, y1], 0.8);
    this.moved();
  }

  /** Moves so that a place is in view, if it is not. */
  reveal(place) {
    this.measure();
    const [px, py] = this.camera.toScreen(place);
    if (px >= 0 && py >= 0 && px <= this.camera.width && py <= this.camera.height) return;
    [this.camera.x, this.camera.y] = place;
    this.moved();
  }

  zoom(factor, at) {
    this.measure();
    this.camera.zoom(factor, at ?? [this.camera.width / 2, this.camera.height / 2]);
    this.moved();
  }

  moved() {
    this.isPlaced = this.isMoving = true;
    this.draw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.isMoving = false; this.draw(); }, REST_AFTER);
  }

  draw() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.paint();
    });
  }

  paint() {
    const { context, width, height, ratio } = fit(this.canvas);
    Object.assign(this.camera, { width, height });
    if (!this.data || !width) return;
    if (this.showCells) this.cells.paint(context, this.camera, ratio, this.isMoving);
    if (this.showPoints) this.points.paint(context, this.camera, this.isMoving);
    this.canvas.dataset.points = this.showPoints ? this.points.shown : 0;
    this.canvas.dataset.loaded = this.points.count;
    if (this.showCells && this.selectedCell !== null) {
      this.cells.path(context, this.selectedCell, this.camera);
      context.lineWidth = 3;
      context.strokeStyle = theme("--accent");
      context.stroke();
    }
    this.paintBins(context, this.bins);
    if (this.selectedPlace) this.ring(context, this.selectedPlace, 8, theme("--accent"), 3);
    this.overlay?.(context, this);
  }

  paintBins(context, bins) {
    context.lineWidth = 1;
    context.strokeStyle = theme("--accent");
    for (const [x, y, n] of bins) {
      const [px, py] = this.camera.toScreen([x, y]);
      const side = 2 + Math.min(8, Math.sqrt(n));
      context.strokeRect(px - side / 2, py - side / 2, side, side);
    }
  }

  ring(context, place, radius, colour, width = 2) {
    const [px, py] = this.camera.toScreen(place);
    context.beginPath();
    context.arc(px, py, radius, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }

  /** Selects what is at a pixel: a point where there are few, or the smallest cell around it. */
  async pick(px, py) {
    const isForPoints = this.showPoints && (this.points.shown <= MANY || !this.showCells);
    const near = isForPoints ? this.points.nearest(this.camera, px, py, CLICK_REACH) : undefined;
    if (near !== undefined) {
      try {
        this.selectPoint(this.points.place(near));
        const id = await this.points.id(near);
        if (id !== undefined) this.onPoint(id);
      } catch (error) { this.onError(error); }
      return;
    }
    const cell = this.showCells ? this.cells.at(this.camera.toPlane(px, py)) : undefined;
    if (cell !== undefined) this.selectCell(cell);
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
        this.camera.x -= (now[0] - before[0]) / this.camera.scale;
        this.camera.y += (now[1] - before[1]) / this.camera.scale;
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
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    // The browser has its own meanings of keys that are held with these.
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { camera } = this;
    const move = (right, up) => () => {
      camera.x += (60 * right) / camera.scale;
      camera.y += (60 * up) / camera.scale;
      this.moved();
    };
    const keys = {
      ArrowLeft: move(-1, 0),
      ArrowRight: move(1, 0),
      ArrowUp: move(0, 1),
      ArrowDown: move(0, -1),
      "+": () => this.zoom(1.4),
      "=": () => this.zoom(1.4),
      "-": () => this.zoom(1 / 1.4),
      0: () => this.showAll(),
      Enter: () => this.pick(camera.width / 2, camera.height / 2),
    };
    if (!keys[event.key] || !this.data) return;
    event.preventDefault();
    keys[event.key]();
  }
}
