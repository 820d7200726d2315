// What part of the plane a canvas shows.

export class Camera {
  /** `x` and `y` are in the middle of `width` by `height` pixels; `scale` is pixels for a unit of the plane. */
  constructor({ x = 0, y = 0, scale = 1, width = 0, height = 0 } = {}) {
    Object.assign(this, { x, y, scale, width, height });
  }

  toScreen([x, y]) {
    return [(x - this.x) * this.scale + this.width / 2, (this.y - y) * this.scale + this.height / 2];
  }

  toPlane(px, py) {
    return [(px - this.width / 2) / this.scale + this.x, this.y - (py - this.height / 2) / this.scale];
  }

  /** Shows a rectangle in a share of the canvas. */
  show([left, top, right, bottom], share) {
    const scale = share * Math.min(this.width / Math.max(right - left, 1e-6), this.height / Math.max(bottom - top, 1e-6));
    Object.assign(this, { x: (left + right) / 2, y: (top + bottom) / 2, scale: scale || 1 });
  }

  /** Zooms; what is at the pixel stays there. */
  zoom(factor, [px, py]) {
    const before = this.toPlane(px, py);
    this.scale *= factor;
    const after = this.toPlane(px, py);
    this.x += before[0] - after[0];
    this.y += before[1] - after[1];
  }
}
