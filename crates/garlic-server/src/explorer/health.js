// The health of the server: rates and latencies from /metrics, and the state of the index.

import { getJson, getText, indexPath } from "./api.js";
import { bars, bytes, facts, line, make, short } from "./charts.js";

const $ = (id) => document.getElementById(id);
const EVERY = 1000;
const HISTORY = 120;
const SEARCH = 'route="/v1/indexes/{name}/search"';

/** The text of /metrics as numbers by name and labels. */
export function parse(text) {
  const values = new Map();
  for (const line of text.split("\n")) {
    const at = line.lastIndexOf(" ");
    if (at > 0 && !line.startsWith("#")) values.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return values;
}

export class Health {
  constructor({ onError }) {
    this.onError = onError;
    this.rates = [];
  }

  show(info) {
    this.info = info;
    this.index();
  }

  /** Looks at the server every second while its view is open. */
  open(isOpen) {
    clearInterval(this.timer);
    if (!isOpen) return;
    this.look();
    this.index();
    this.timer = setInterval(() => this.look(), EVERY);
  }

  async look() {
    try {
      const now = { at: performance.now(), values: parse(await getText("/metrics")) };
      const before = this.last ?? now;
      this.last = now;
      const value = (name) => now.values.get(name) ?? 0;
      const seconds = (now.at - before.at) / 1000;
      const rate = (name) => (seconds > 0 ? (value(name) - (before.values.get(name) ?? 0)) / seconds : 0);
      this.rates.push(rate("garlic_queries_total"));
      this.rates = this.rates.slice(-HISTORY);
      const buckets = this.buckets(now.values);
      const tile = (number, name) => make("div", { class: "tile" }, make("b", {}, number), make("span", {}, name));
      const batches = value("garlic_search_batches_total");
      $("tiles").replaceChildren(
        tile(short(Math.round(this.rates.at(-1))), "searches a second"),
        tile(this.quantile(buckets, 0.5), "median latency"),
        tile(this.quantile(buckets, 0.99), "99th percentile"),
        tile(batches ? (value("garlic_search_batch_queries_total") / batches).toFixed(2) : "–", "queries a batch"),
        tile(short(Math.round(rate("garlic_points_written_total"))), "points written a second"),
        tile(short(value("garlic_requests_in_flight")), "requests in flight"),
        tile(short(value("garlic_connections")), "connections"),
        tile(bytes(value("garlic_resident_bytes")), "memory of the process"));
      line($("qps"), this.rates, HISTORY);
      bars($("latency"), buckets.map((b) => b.count), { labels: buckets.map((b) => b.label) });
    } catch (error) { this.onError(error); }
  }

  /** Searches by latency. */
  buckets(values) {
    const found = [];
    for (const [name, below] of values) {
      if (!name.startsWith("garlic_request_seconds_bucket") || !name.includes(SEARCH)) continue;
      const end = name.match(/le="([^"]+)"/)[1];
      found.push({ end: end === "+Inf" ? Infinity : Number(end), below });
    }
    found.sort((a, b) => a.end - b.end);
    const name = (end) => (end === Infinity ? "more" : end < 0.001 ? `${Math.round(end * 1e6)}µs` : end < 1 ? `${short(end * 1e3)}ms` : `${short(end)}s`);
    return found.map((bucket, i) => ({ end: bucket.end, label: name(bucket.end), count: bucket.below - (found[i - 1]?.below ?? 0) }));
  }

  quantile(buckets, share) {
    const all = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
    let below = 0;
    for (const bucket of buckets) {
      below += bucket.count;
      if (all && below >= share * all) return `≤ ${bucket.label}`;
    }
    return "–";
  }

  async index() {
    if (!this.info) return;
    try {
      const about = await getJson(`${indexPath(this.info.name)}/stats`);
      const { drift, storage, training } = about;
      const rows = [
        ["points", short(about.points)], ["dimension", about.dim], ["metric", about.metric],
        ["cells", short(about.cells)], ["bins", short(about.bins)], ["vectors stored as", about.stored_as],
        ["memory of the index", bytes(about.memory.total)], ["of it in a mapped file", bytes(about.mapped_bytes)],
        ["can be changed", about.writable ? "yes" : "no"],
      ];
      if (drift) {
        rows.push(["points added since the build", short(drift.added)], ["points removed since", short(drift.removed)],
          ["spread of added points (1 = like the others)", drift.spread.toFixed(3)], ["trainings", drift.trainings],
          ["a rebuild would pay off", drift.rebuild ? "yes" : "no"], ["reads everything", about.reads_everything ? "yes" : "no"]);
      }
      if (training) rows.push(["training now", training.running ? "yes" : "no"]);
      if (storage) rows.push(["log", `${bytes(storage.log_bytes)} in ${short(storage.log_batches)} batches`], ["checkpoint", bytes(storage.checkpoint_bytes)]);
      $("health-index").replaceChildren(make("h2", {}, `Index ${this.info.name}`), facts(rows));
    } catch (error) { this.onError(error); }
  }
}
