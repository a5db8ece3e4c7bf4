// Keeps the page current, and adds the keyboard. Everything is rendered by the server; this file only replaces what
// differs, so the focus, the scroll position and a zoomed graph stay.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// ---- The step from the token to the cookie ----
const forward = $("[data-forward]");
if (forward) location.replace(forward.href);

// ---- Replace what differs ----
function morph(now, next) {
  if (now.isEqualNode(next)) return;
  if (now.nodeType !== next.nodeType || now.nodeName !== next.nodeName) {
    now.replaceWith(next);
    return;
  }
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.data !== next.data) now.data = next.data;
    return;
  }
  // What the user has changed: a search field with the focus, a zoomed graph, an open section.
  const open = now.nodeName === "DETAILS" && now.open;
  const box = now.dataset.zoomed ? now.getAttribute("viewBox") : null;
  for (const { name } of [...now.attributes]) if (!next.hasAttribute(name)) now.removeAttribute(name);
  for (const { name, value } of [...next.attributes]) if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  if (open) now.open = true;
  if (box) { now.setAttribute("viewBox", box); now.dataset.zoomed = "yes"; }
  const keyed = new Map($$(":scope > [data-key]", now).map((child) => [child.dataset.key, child]));
  const kept = new Set();
  let at = now.firstChild;
  for (const wanted of [...next.childNodes]) {
    const key = wanted.dataset?.key;
    const same = key === undefined ? at : keyed.get(key);
    if (same && !kept.has(same) && (key !== undefined || same.dataset?.key === undefined)) {
      kept.add(same);
      if (same === at) at = at.nextSibling;
      else now.insertBefore(same, at);
      const before = same.previousSibling;
      morph(same, wanted);
      kept.add(before ? before.nextSibling : now.firstChild);
    } else {
      kept.add(now.insertBefore(wanted, at));
    }
  }
  for (const child of [...now.childNodes]) if (!kept.has(child)) child.remove();
}

// ---- Read the page again ----
let reading = null;
let again = false;
async function refresh() {
  // The answer to a form cannot be read again: a reload would send the form once more.
  if (!document.body.dataset.live) return;
  if (reading) { again = true; return; }
  reading = new AbortController();
  try {
    const answer = await fetch(location.href, { signal: reading.signal, headers: { accept: "text/html" } });
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = $("#main");
    const wanted = $("#main", next);
    if (!wanted) { location.reload(); return; }
    const field = document.activeElement?.id === "q" ? document.activeElement : null;
    const typed = field && [field.value, field.selectionStart, field.selectionEnd];
    morph(main, wanted);
    if (field) { field.value = typed[0]; field.setSelectionRange(typed[1], typed[2]); }
    document.title = next.title;
    tick();
  } catch {
    // The connection is gone; the stream says so and tries again.
  } finally {
    reading = null;
    if (again) { again = false; refresh(); }
  }
}

// ---- Changes from the server ----
let source = null;
let retry = 0;
function listen() {
  const where = document.body.dataset.live;
  if (!where || source) return;
  clearTimeout(retry);
  source = new EventSource(where);
  const light = $(".live");
  const say = (state, words) => { light.dataset.state = state; $("span", light).textContent = words; };
  source.addEventListener("open", () => say("on", "live"));
  source.addEventListener("error", () => {
    say("off", "disconnected");
    // The browser tries again by itself after a broken connection, but not after a refusal.
    if (source?.readyState === EventSource.CLOSED) { silence(); retry = setTimeout(listen, 5000); }
  });
  source.addEventListener("change", refresh);
}
function silence() {
  source?.close();
  source = null;
}
// A browser has few connections to one server: a hidden page gives its own back.
document.addEventListener("visibilitychange", () => (document.hidden ? silence() : listen()));
addEventListener("pagehide", silence);
addEventListener("pageshow", listen);

// ---- Times, as kubectl writes them ----
function held(seconds) {
  const [minutes, hours, days] = [60, 3600, 86400].map((unit) => Math.floor(seconds / unit));
  const two = (big, bigUnit, small, smallUnit) => `${big}${bigUnit}${small ? `${small}${smallUnit}` : ""}`;
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (hours < 3) return `${minutes}m`;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  if (days < 8) return two(days, "d", hours % 24, "h");
  return `${days}d`;
}
function tick() {
  const now = Date.now();
  for (const time of $$("time[datetime]")) {
    const text = held(Math.max(0, Math.floor((now - Date.parse(time.dateTime)) / 1000)));
    if (time.textContent !== text) time.textContent = text;
  }
}

// ---- Search while typing ----
let typing = 0;
document.addEventListener("input", (event) => {
  const form = event.target.closest?.("[data-search]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => {
    const address = new URL(location.href);
    if (event.target.value) address.searchParams.set("q", event.target.value);
    else address.searchParams.delete("q");
    history.replaceState(null, "", address);
    refresh();
  }, 120);
});
document.addEventListener("submit", (event) => {
  if (event.target.matches("[data-search]")) event.preventDefault();
});

// ---- Buttons ----
document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  }
  if (event.target.closest("[data-help]")) $("#help").showModal();
  const button = event.target.closest("[data-zoom]");
  if (button) zoom($("[data-graph]"), button.dataset.zoom);
});

// ---- Keyboard ----
function step(by) {
  const rows = $$(".row");
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))] ?? rows[0];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  if (event.target.matches("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const graph = $("[data-graph]");
  const act = {
    "/": () => $("#q")?.focus(),
    j: () => step(1),
    k: () => step(-1),
    u: () => { location.href = "/"; },
    "?": () => $("#help")?.showModal(),
    "+": () => zoom(graph, "in"),
    "-": () => zoom(graph, "out"),
    0: () => zoom(graph, "all"),
  }[event.key];
  if (act) { event.preventDefault(); act(); }
});

// ---- A graph: wheel, drag, buttons ----
function zoom(graph, how, x = 0.5, y = 0.5) {
  if (!graph) return;
  if (how === "all") {
    graph.setAttribute("viewBox", graph.dataset.graph);
    delete graph.dataset.zoomed;
    return;
  }
  const [left, top, width, height] = graph.getAttribute("viewBox").split(" ").map(Number);
  const [, , all] = graph.dataset.graph.split(" ").map(Number);
  const factor = how === "in" ? 0.8 : 1.25;
  const wide = Math.min(all * 2, Math.max(all / 40, width * factor));
  const by = wide / width;
  graph.setAttribute("viewBox", [left + width * (1 - by) * x, top + height * (1 - by) * y, wide, height * by].join(" "));
  graph.dataset.zoomed = "yes";
}
document.addEventListener("wheel", (event) => {
  const graph = event.target.closest?.("[data-graph]");
  // Without a key, the wheel scrolls the page.
  if (!graph || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  const box = graph.getBoundingClientRect();
  zoom(graph, event.deltaY < 0 ? "in" : "out", (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
}, { passive: false });
let drag = null;
document.addEventListener("pointerdown", (event) => {
  const graph = event.target.closest?.("[data-graph]");
  if (!graph || event.button !== 0 || event.target.closest("a")) return;
  drag = { graph, x: event.clientX, y: event.clientY, box: graph.getAttribute("viewBox").split(" ").map(Number) };
  graph.setPointerCapture(event.pointerId);
});
document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const [left, top, width, height] = drag.box;
  const scale = Math.max(width / drag.graph.clientWidth, height / drag.graph.clientHeight);
  drag.graph.setAttribute("viewBox", [left - (event.clientX - drag.x) * scale, top - (event.clientY - drag.y) * scale, width, height].join(" "));
  drag.graph.dataset.zoomed = "yes";
});
document.addEventListener("pointerup", () => { drag = null; });

listen();
tick();
setInterval(tick, 1000);
