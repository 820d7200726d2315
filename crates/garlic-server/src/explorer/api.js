// Requests to the server that this page came from.

const KEY = "garlic-key";
const dialog = document.getElementById("key-dialog");

/** Asks for a key; resolves when one was given. */
let asking = null;
function askForKey(isWrong) {
  document.getElementById("key-wrong").hidden = !isWrong;
  asking ??= new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(KEY, document.getElementById("key").value);
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

async function send(path, options = {}) {
  for (;;) {
    const headers = { ...options.headers };
    const key = sessionStorage.getItem(KEY);
    if (key) headers.authorization = `Bearer ${key}`;
    const response = await fetch(path, { ...options, headers });
    if (response.status === 401) {
      // Another request may have asked for a key since this one was sent.
      if (key === sessionStorage.getItem(KEY)) await askForKey(Boolean(key));
      continue;
    }
    if (!response.ok) {
      const text = await response.text();
      let message = text;
      try { message = JSON.parse(text).error.message; } catch { /* not from the server itself */ }
      throw new Error(message || `status ${response.status}`);
    }
    return response;
  }
}

/** Identifiers beyond 2^53 are no numbers of JavaScript: where the browser shows how they were written, they are BigInts. */
const exact = (_, value, context) =>
  (typeof value === "number" && !Number.isSafeInteger(value) && /^\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value);
const asWritten = (_, value) => (typeof value === "bigint" ? JSON.rawJSON?.(String(value)) ?? Number(value) : value);
export const wholeNumber = (digits) => (Number.isSafeInteger(Number(digits)) ? Number(digits) : BigInt(digits));

export const fromJson = (text) => JSON.parse(text, exact);
export const toJson = (value) => JSON.stringify(value, asWritten);

export const getJson = async (path, signal) => fromJson(await (await send(path, { signal })).text());
export const getText = async (path) => (await send(path)).text();

export async function post(path, body, signal) {
  const headers = { "content-type": "application/json" };
  return fromJson(await (await send(path, { method: "POST", headers, body: toJson(body), signal })).text());
}

/** A binary answer: its JSON, its rows of floats, and what follows them as 64-bit numbers. */
export async function getBinary(path, signal) {
  const buffer = await (await send(path, { signal })).arrayBuffer();
  const view = new DataView(buffer);
  const [json, rows, columns] = [4, 8, 12].map((at) => view.getUint32(at, true));
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 16, json)));
  const floats = new Float32Array(buffer.slice(16 + json, 16 + json + 4 * rows * columns));
  const rest = buffer.slice(16 + json + 4 * rows * columns);
  const numbers = new BigUint64Array(rest, 0, Math.floor(rest.byteLength / 8));
  return { about, rows, floats, numbers };
}

export const indexPath = (name) => `/v1/indexes/${encodeURIComponent(name)}`;

/** An identifier that somebody typed, as the index has it. */
export const typedId = (text, named) => (named ? text : /^\d+$/.test(text.trim()) ? wholeNumber(text.trim()) : text);
