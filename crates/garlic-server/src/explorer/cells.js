// The cells of a map as ellipses.

import { Camera } from "./camera.js";
import { ramp } from "./charts.js";

const REACH = 2;         // Standard deviations of an ellipse.
const FILL = 6;          // Opacities of all cells together: many lie one over the other.
const STROKE = 40;
const MARGIN = 0.25;     // Of the width and height, on each side of the picture.
const LARGEST = 3;       // How far the picture is enlarged.

export class Cells {
  /** `list` has a centre, two axes, an angle and a number of points for each cell. */
  constructor(list) {
    this.list = list;
    const density = ([, , a, b, , n]) => Math.log((n + 0.5) / (Math.max(a, 1e-6) * Math.max(b, 1e-6)));
    const all = list.map(density).sort((a, b) => a - b);
    const [low, high] = [all[Math.floor(all.length * 0.05)], all[Math.floor((all.length - 1) * 0.95)]];
    this.shades = list.map((cell) => (high > low ? (density(cell) - low) / (high - low) : 0.5));
    const size = (cell) => list[cell][2] * list[cell][3];
    /** Large ones first, so that small ones lie above them. */
    this.order = list.map((_, i) => i).sort((i, j) => size(j) - size(i));
    this.picture = document.createElement("canvas");
    this.camera = null;
  }

  /** Begins the path of an ellipse. Gives its middle and its longer radius on the screen. */
  path(context, cell, camera) {
    const [x, y, a, b, angle] = this.list[cell];
    const [px, py] = camera.toScreen([x, y]);
    const scale = REACH * camera.scale;
    context.beginPath();
    context.ellipse(px, py, Math.max(1, a * scale), Math.max(1, b * scale), -angle, 0, 2 * Math.PI);
    return [px, py, a * scale];
  }

  /** Draws all. While the map moves, a picture of them moves with it: hundreds of large ellipses take too long for a frame. */
  paint(context, camera, ratio, isMoving) {
    if (!(isMoving ? this.covers(camera) : this.fits(camera))) this.takePicture(camera, ratio);
    const factor = camera.scale / this.camera.scale;
    const [px, py] = camera.toScreen(this.camera.toPlane(0, 0));
    context.drawImage(this.picture, px, py, this.camera.width * factor, this.camera.height * factor);
  }

  /** Whether the picture shows all that the camera does, and sharply enough. */
  covers(camera) {
    if (!this.camera || camera.scale > LARGEST * this.camera.scale) return false;
    const [left, top] = this.camera.toScreen(camera.toPlane(0, 0));
    const [right, bottom] = this.camera.toScreen(camera.toPlane(camera.width, camera.height));
    return left >= 0 && top >= 0 && right <= this.camera.width && bottom <= this.camera.height;
  }

  /** Whether the picture is the one of this camera. */
  fits({ x, y, scale, width }) {
    const { camera } = this;
    return camera && camera.x === x && camera.y === y && camera.scale === scale && camera.width >= width;
  }

  /** Colours have changed. */
  forget() {
    this.camera = null;
  }

  takePicture(camera, ratio) {
    const { x, y, scale } = camera;
    const [width, height] = [camera.width, camera.height].map((side) => Math.ceil(side * (1 + 2 * MARGIN)));
    this.camera = new Camera({ x, y, scale, width, height });
    [this.picture.width, this.picture.height] = [width * ratio, height * ratio];
    const context = this.picture.getContext("2d");
    context.scale(ratio, ratio);
    const among = (all, least, most) => Math.min(most, Math.max(least, all / this.list.length));
    const [fill, stroke] = [among(FILL, 0.01, 0.16), among(STROKE, 0.1, 0.8)];
    for (const cell of this.order) {
      const [px, py, radius] = this.path(context, cell, this.camera);
      if (px + radius < 0 || px - radius > width || py + radius < 0 || py - radius > height) continue;
      context.fillStyle = ramp(this.shades[cell], fill);
      context.fill();
      context.strokeStyle = ramp(this.shades[cell], stroke);
      context.stroke();
    }
  }

  /** The smallest cell around a place. */
  at([x, y]) {
    const inside = this.order.filter((cell) => {
      const [cx, cy, a, b, angle] = this.list[cell];
      const [dx, dy] = [x - cx, y - cy];
      const [c, s] = [Math.cos(angle), Math.sin(angle)];
      return Math.hypot((dx * c + dy * s) / Math.max(a, 1e-9), (dy * c - dx * s) / Math.max(b, 1e-9)) <= REACH;
    });
    return inside.at(-1);
  }
}
