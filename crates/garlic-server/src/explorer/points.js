// The points of a map: all of them, which arrive in pieces in random order, so that the first ones are a sample.

import { getBinary, indexPath, wholeNumber } from "./api.js";
import { KINDS, rgb, theme } from "./charts.js";

const PIECE = 50000;     // Points of a request.
const FEW = 5000;        // Up to so many in view are squares that can be clicked; more are a picture of their density.
const SLOW_MS = 8;       // Longer than this, a moving map is drawn from fewer points.
const FAINTEST = 0.3;    // Opacity of a pixel with one point, as a share of that of a pixel with many.
const DARKEST = 0.6;

export class Points {
  /** `changed` is called when points have come, `stale` when the map has other axes now. */
  constructor({ changed, stale, failed }) {
    Object.assign(this, { changed, stale, failed });
    this.picture = document.createElement("canvas");
    this.clear();
  }

  clear() {
    this.abort?.abort();
    this.places = new Float32Array();
    this.count = 0;
    this.names = new Map();
    this.kinds = null;
    this.near = [];
    this.shown = 0;
    this.took = 0;
  }

  /** Loads the points of an index, with the values of a column as their colours. */
  async load(info, map, column) {
    this.clear();
    const abort = (this.abort = new AbortController());
    this.path = `${indexPath(info.name)}/explore/points`;
    this.places = new Float32Array(2 * map.points);
    this.kinds = column ? new Uint8Array(map.points) : null;
    try {
      for (let from = 0; from !== null; ) {
        const asked = new URLSearchParams({ from, limit: PIECE });
        if (column) asked.set("column", JSON.stringify(column));
        const { about, rows, floats } = await getBinary(`${this.path}?${asked}`, abort.signal);
        if (abort.signal.aborted) return;
        if (about.axes !== map.axes) { this.stale(); return; }
        this.append(floats, rows, about.values);
        from = about.next;
        this.changed();
      }
    } catch (error) {
      if (error.name !== "AbortError") this.failed(error);
    }
  }

  /** Takes a piece; an index that changes may have more points now than at first. */
  append(floats, rows, values) {
    const room = Math.min(rows, this.places.length / 2 - this.count);
    this.places.set(floats.subarray(0, 2 * room), 2 * this.count);
    for (let i = 0; i < room && this.kinds; i++) this.kinds[this.count + i] = this.kindOf(values[i]);
    this.count += room;
  }

  /** The number of the colour of a value. */
  kindOf(value) {
    const text = String(value);
    if (!this.names.has(text)) this.names.set(text, this.names.size % KINDS.length);
    return this.names.get(text);
  }

  paint(context, camera, isMoving) {
    const all = isMoving && this.took > SLOW_MS ? Math.max(FEW, Math.floor((this.count * SLOW_MS) / this.took)) : this.count;
    const started = performance.now();
    const [width, height] = [Math.round(camera.width), Math.round(camera.height)];
    if (!width || !height) return;
    this.resize(width, height);
    this.add(camera, Math.min(all, this.count), width, height);
    if (this.shown <= FEW) this.paintSquares(context, camera);
    else this.paintDensity(context, width, height);
    if (all === this.count) this.took = performance.now() - started;
  }

  resize(width, height) {
    if (this.picture.width === width && this.picture.height === height && this.image) return;
    [this.picture.width, this.picture.height] = [width, height];
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  /** Counts the points of every pixel, or keeps the colour of the last one; keeps the first few in view. */
  add(camera, all, width, height) {
    const { places, pixels, kinds } = this;
    const { scale } = camera;
    const [right, down] = [width / 2 - camera.x * scale, height / 2 + camera.y * scale];
    const colours = kinds && KINDS.map((colour) => packed(rgb(colour), 1));
    const near = [];
    let shown = 0;
    pixels.fill(0);
    for (let i = 0; i < all; i++) {
      const px = places[2 * i] * scale + right;
      const py = down - places[2 * i + 1] * scale;
      if (!(px >= 0 && py >= 0 && px < width && py < height)) continue;
      const at = (py | 0) * width + (px | 0);
      pixels[at] = kinds ? colours[kinds[i]] : pixels[at] + 1;
      if (shown++ < FEW) near.push(i);
    }
    Object.assign(this, { near, shown });
  }

  paintSquares(context, camera) {
    const side = this.shown > 800 ? 2.5 : 4;
    context.fillStyle = theme("--point");
    for (const i of this.near) {
      const [px, py] = camera.toScreen(this.place(i));
      if (this.kinds) context.fillStyle = KINDS[this.kinds[i]];
      context.fillRect(px - side / 2, py - side / 2, side, side);
    }
  }

  paintDensity(context, width, height) {
    const { pixels } = this;
    if (!this.kinds) {
      const ink = rgb(theme("--ink"));
      const most = Math.max(3, (20 * this.shown) / pixels.length);
      const opacity = (n) => Math.min(1, FAINTEST + ((1 - FAINTEST) * Math.log(1 + n)) / Math.log(1 + most));
      const shades = Uint32Array.from({ length: 256 }, (_, n) => (n ? packed(ink, DARKEST * opacity(n)) : 0));
      for (let i = 0; i < pixels.length; i++) if (pixels[i]) pixels[i] = shades[Math.min(255, pixels[i])];
    }
    this.picture.getContext("2d").putImageData(this.image, 0, 0);
    context.drawImage(this.picture, 0, 0, width, height);
  }

  place(i) {
    return [this.places[2 * i], this.places[2 * i + 1]];
  }

  /** The nearest point within some pixels; only where there are few. */
  nearest(camera, px, py, reach) {
    if (this.shown > FEW) return undefined;
    let [best, found] = [reach, undefined];
    for (const i of this.near) {
      const [x, y] = camera.toScreen(this.place(i));
      const away = Math.hypot(x - px, y - py);
      if (away < best) [best, found] = [away, i];
    }
    return found;
  }

  /** The identifier of a point. Only its place is known here. */
  async id(i) {
    const [x, y] = this.place(i);
    const asked = new URLSearchParams({ left: x, right: x, top: y, bottom: y, limit: 1, with_ids: true });
    const { about, numbers } = await getBinary(`${this.path}?${asked}`);
    if (about.ids) return about.ids[0];
    return numbers.length ? wholeNumber(numbers[0]) : undefined;
  }
}

/** A pixel of a colour, in the order of bytes that machines with browsers have. */
const packed = ([r, g, b], opacity) => ((Math.round(255 * opacity) << 24) | (b << 16) | (g << 8) | r) >>> 0;
