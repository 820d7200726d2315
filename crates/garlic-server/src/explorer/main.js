// Joins the parts of the page.

import { getJson, indexPath, post, typedId } from "./api.js";
import { KINDS, make, ramp, short } from "./charts.js";
import { Details } from "./details.js";
import { Health } from "./health.js";
import { Lab } from "./lab.js";
import { MapView } from "./map.js";

const $ = (id) => document.getElementById(id);

function say(message, isError = false) {
  $("status").textContent = message;
  $("status").classList.toggle("error", isError);
}
const onError = (error) => say(error ? error.message : "", Boolean(error));

const map = new MapView($("map"), {
  onCell: (cell) => details.cell(cell).then((about) => { if (about) { map.bins = about.bins ?? []; map.draw(); } }, onError),
  onPoint: (id) => details.point(id).catch(onError),
  onKinds: (names) => {
    const shown = [...names].slice(0, 12).map(([name, kind]) => {
      const patch = make("i");
      patch.style.background = KINDS[kind];
      return make("span", {}, patch, name.length > 24 ? `${name.slice(0, 24)}…` : name);
    });
    $("legend-kinds").replaceChildren(...(map.column ? shown : []), names.size > 12 && map.column ? "…" : "");
  },
  onError,
});
const details = new Details($("details"), { onSelect: (id) => select(id) });
const labMap = new MapView($("lab-map"), { onError });
map.onLoaded = () => labMap.share(map);
map.onPieces = () => labMap.draw();
const lab = new Lab(labMap, { onSelect: (id) => { open("map"); select(id); }, sameAxes, onError });
const health = new Health({ onError });
let indexes = [];
let current = null;

/** Loads the map again if the index has been trained since, and its axes are others. */
async function sameAxes(axes) {
  if (map.data && axes !== map.data.axes) await map.load(current);
}

/** Shows a point in the panel and on the map. */
async function select(id) {
  try {
    const trace = post(`${indexPath(current.name)}/explore/trace`, { ids: [id], k: 1 });
    await details.point(id);
    const { place, axes } = await trace;
    await sameAxes(axes);
    map.selectPoint(place);
    map.reveal(place);
    onError(null);
  } catch (error) { onError(error); }
}

async function choose(name) {
  current = indexes.find((index) => index.name === name);
  if (!current) return;
  history.replaceState(null, "", `#${encodeURIComponent(name)}`);
  $("facts").textContent = `${short(current.points)} × ${current.dim}, ${current.metric}${current.writable ? "" : ", read-only"}`;
  $("colour").replaceChildren(new Option("none", ""), ...current.columns.map((column) => new Option(column.name, column.name)));
  map.column = "";
  details.show(current);
  lab.show(current);
  health.show(current);
  say("Drawing the map …");
  try {
    const chosen = current;
    await map.load(chosen);
    if (chosen !== current || !map.data) return;
    $("legend-note").textContent = `${short(map.data.points)} points${map.data.of > map.data.points ? ` of ${short(map.data.of)}` : ""}; the two axes hold ${Math.round(100 * map.data.variance_kept)} % of the variance`;
    map.canvas.dataset.cells = map.data.cells.length;
    say("");
  } catch (error) {
    if (current?.name !== name) return;
    map.draw();
    onError(error);
  }
}

const VIEWS = ["map", "lab", "health"];

function open(view) {
  for (const name of VIEWS) {
    const isOpen = name === view;
    $(`view-${name}`).hidden = !isOpen;
    $(`tab-${name}`).setAttribute("aria-selected", isOpen);
    $(`tab-${name}`).tabIndex = isOpen ? 0 : -1;
  }
  health.open(view === "health");
  if (view === "lab" && current && labMap.data && !lab.trace) labMap.showAll();
}

VIEWS.forEach((name, at) => {
  $(`tab-${name}`).addEventListener("click", () => open(name));
  $(`tab-${name}`).addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = VIEWS[(at + step + VIEWS.length) % VIEWS.length];
    open(next);
    $(`tab-${next}`).focus();
  });
});

function drawRamp() {
  const context = $("ramp").getContext("2d");
  for (let x = 0; x < 120; x++) {
    context.fillStyle = ramp(x / 119);
    context.fillRect(x, 0, 1, 10);
  }
}

const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $("theme").textContent = `Theme: ${theme}`;
  $("theme").dataset.theme = theme;
  localStorage.setItem("garlic-theme", theme);
  drawRamp();
  map.cells?.forget();
  map.draw();
  labMap.draw();
}

$("theme").addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf($("theme").dataset.theme) + 1) % THEMES.length]));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme($("theme").dataset.theme));
$("index").addEventListener("change", () => choose($("index").value));
$("show-cells").addEventListener("change", (event) => { map.showCells = event.target.checked; map.draw(); });
$("show-points").addEventListener("change", (event) => { map.showPoints = event.target.checked; map.draw(); });
$("colour").addEventListener("change", (event) => map.setColumn(event.target.value));
$("zoom-in").addEventListener("click", () => map.zoom(1.6));
$("zoom-out").addEventListener("click", () => map.zoom(1 / 1.6));
$("zoom-all").addEventListener("click", () => map.showAll());
$("find").addEventListener("submit", (event) => {
  event.preventDefault();
  select(typedId($("find-id").value, current?.named));
});

async function start() {
  setTheme(localStorage.getItem("garlic-theme") ?? "auto");
  try {
    ({ indexes } = await getJson("/v1/indexes"));
    $("index").replaceChildren(...indexes.map((index) => new Option(index.name, index.name)));
    const wanted = decodeURIComponent(location.hash.slice(1));
    const first = indexes.find((index) => index.name === wanted) ?? indexes[0];
    if (!first) { say("The server has no indexes yet. Create one with PUT /v1/indexes/NAME."); return; }
    $("index").value = first.name;
    await choose(first.name);
  } catch (error) { onError(error); }
}

start();
