// Small drawings: a canvas that fits its place, colours, bars, lines, and pictures of vectors.

/** Sets the pixels of a canvas to those of the screen. Gives its context, its size in CSS pixels, and pixels of the screen for each. */
export function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height, ratio };
}

export const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const RAMP_LIGHT = [[221, 208, 235], [176, 160, 216], [120, 105, 190], [88, 60, 150], [52, 16, 98]];

/** A colour for a share from 0 to 1: darker is more on light ground, brighter on dark. */
export function ramp(share, alpha = 1) {
  const stops = isDark() ? RAMP : RAMP_LIGHT;
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const mix = stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * (at - low)));
  return `rgba(${mix.join(",")},${alpha})`;
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Red, green and blue of a colour such as #4477aa. */
export const rgb = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

/** Colours for kinds of things, which people with few cones can tell apart as well as may be. */
export const KINDS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#e08214", "#44aa99", "#8c6bb1", "#999933"];

export function bars(canvas, values, { labels = [], log = false } = {}) {
  const { context, width, height } = fit(canvas);
  const shown = values.map((v) => (log ? Math.log10(Math.max(v, 1e-12)) : v));
  const floor = log ? Math.min(...shown) - 0.3 : 0;
  const top = Math.max(...shown, floor + 1e-9);
  const bottom = height - (labels.length ? 18 : 4);
  const wide = width / Math.max(1, values.length);
  context.fillStyle = theme("--accent");
  shown.forEach((value, i) => {
    const tall = ((value - floor) / (top - floor)) * (bottom - 14);
    context.fillRect(i * wide + wide * 0.1, bottom - tall, Math.max(1, wide * 0.8), tall);
  });
  context.fillStyle = theme("--soft");
  context.font = "11px system-ui";
  context.textAlign = "center";
  const every = Math.max(1, Math.ceil(labels.length / (width / 44)));
  labels.forEach((label, i) => {
    if (i % every === 0) context.fillText(label, (i + 0.5) * wide, height - 4);
  });
  context.textAlign = "left";
  if (values.length) context.fillText(short(Math.max(...values)), 2, 11);
}

export function line(canvas, values, length) {
  const { context, width, height } = fit(canvas);
  const top = Math.max(1, ...values);
  const x = (i) => width - ((values.length - 1 - i) / (length - 1)) * width;
  const y = (v) => height - 4 - (v / top) * (height - 20);
  context.strokeStyle = theme("--accent");
  context.lineWidth = 2;
  context.beginPath();
  values.forEach((v, i) => (i ? context.lineTo(x(i), y(v)) : context.moveTo(x(i), y(v))));
  context.stroke();
  context.fillStyle = theme("--soft");
  context.font = "11px system-ui";
  context.fillText(short(top), 2, 11);
}

/** Points of (x, y) joined by a line, with a label for each; x on a logarithmic scale. */
export function curve(canvas, points, xName, yName) {
  const { context, width, height } = fit(canvas);
  const logs = points.map((p) => Math.log10(Math.max(p.x, 1e-9)));
  const [left, right] = [Math.min(...logs), Math.max(...logs)];
  const low = Math.min(...points.map((p) => p.y), 0.9);
  const x = (i) => 34 + ((logs[i] - left) / Math.max(right - left, 1e-9)) * (width - 70);
  const y = (v) => 14 + ((1 - v) / Math.max(1 - low, 1e-9)) * (height - 44);
  context.strokeStyle = theme("--line");
  context.fillStyle = theme("--soft");
  context.font = "11px system-ui";
  for (const share of [1, (1 + low) / 2, low]) {
    context.beginPath();
    context.moveTo(34, y(share));
    context.lineTo(width - 8, y(share));
    context.stroke();
    context.fillText(share.toFixed(2), 2, y(share) + 4);
  }
  context.fillText(`${xName}, logarithmic`, 34, height - 4);
  context.fillText(yName, 34, 10);
  context.strokeStyle = context.fillStyle = theme("--accent");
  context.lineWidth = 2;
  context.beginPath();
  points.forEach((p, i) => (i ? context.lineTo(x(i), y(p.y)) : context.moveTo(x(i), y(p.y))));
  context.stroke();
  points.forEach((p, i) => {
    context.beginPath();
    context.arc(x(i), y(p.y), 3.5, 0, 7);
    context.fill();
    context.fillText(p.label, Math.min(x(i) + 5, width - 30), y(p.y) + 14);
  });
}

/** A number in few characters. */
export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(Number(value))) return "–";
  const n = Number(value);
  if (Number.isInteger(n) && Math.abs(n) < 1e8) return n.toLocaleString("en");
  for (const [size, name] of [[1e9, "G"], [1e6, "M"]]) {
    if (Math.abs(n) >= size) return `${(n / size).toFixed(n / size >= 100 ? 0 : 1)}${name}`;
  }
  return Math.abs(n) >= 100 ? n.toFixed(0) : n.toPrecision(3);
}

export const bytes = (n) => (n >= 2 ** 30 ? `${(n / 2 ** 30).toFixed(1)} GiB` : n >= 2 ** 20 ? `${(n / 2 ** 20).toFixed(1)} MiB` : `${(n / 1024).toFixed(0)} KiB`);

/** Whether a vector is shown as a picture of 28 x 28 grey values. */
export const isPicture = (dim) => dim === 784;

/** A picture of a vector of grey values. */
export function picture(vector, className) {
  const side = Math.round(Math.sqrt(vector.length));
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  canvas.className = className;
  const image = canvas.getContext("2d").createImageData(side, side);
  const [low, high] = vector.reduce(([l, h], v) => [Math.min(l, v), Math.max(h, v)], [Infinity, -Infinity]);
  vector.forEach((value, i) => {
    const grey = Math.round((255 * (value - low)) / Math.max(high - low, 1e-9));
    image.data.set([grey, grey, grey, 255], 4 * i);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** An element with attributes and children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replaces what is in an element; what is missing is left out. */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

/** A table of names and values. */
export function facts(pairs) {
  const row = ([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "value" }, value instanceof Node ? value : String(value)));
  return make("table", {}, make("tbody", {}, ...pairs.map(row)));
}
