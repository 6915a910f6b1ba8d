import { lineChart, shareChart, smooth, sparkline } from "./charts.js";

const $ = (id) => document.getElementById(id);
const state = { selected: null, overview: null, token: sessionStorage.getItem("token") ?? "" };

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") made.textContent = value; else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// Theme: the system's, until someone chooses.
const dark = matchMedia("(prefers-color-scheme: dark)");
function applyTheme() {
  document.documentElement.dataset.theme = localStorage.getItem("theme") ?? (dark.matches ? "dark" : "light");
}
dark.addEventListener("change", applyTheme);
$("theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  applyTheme();
});
applyTheme();

async function get(path) {
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  const answer = await fetch(path, { headers });
  if (answer.status === 401) { askForToken(); throw new Error("needs a token"); }
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.json();
}

function askForToken() {
  if ($("login").open) return;
  $("login").showModal();
  $("login").addEventListener("close", () => {
    state.token = $("token").value;
    sessionStorage.setItem("token", state.token);
    tick();
  }, { once: true });
}

const percent = (v) => (v === null || v === undefined ? "–" : `${(100 * v).toFixed(1)} %`);
const number = (v) => (v === null || v === undefined ? "–" : v >= 10000 ? `${(v / 1000).toFixed(1)}k` : String(Math.round(v * 10) / 10));
const key = (stream) => `${stream.model}\n${stream.name}`;
const rate = (series, interval) => series.images.slice(-6, -1).reduce((a, b) => a + b, 0) / (5 * interval);
const share = (part, whole) => (whole ? part / whole : null);

// Accuracy over the last minute or so, weighted alike for both.
const running = (values) => smooth(values, 12);
const latest = (values) => values.findLast((v) => v !== null) ?? null;

function facts(pairs) {
  const list = element("dl", { class: "facts" });
  for (const [name, value, kind] of pairs) {
    list.append(element("div", kind ? { class: kind } : {}, element("dt", { text: name }), element("dd", { text: value })));
  }
  return list;
}

function drawTotals(data) {
  const models = Object.entries(data.models).map(([name, m]) => `${name} (${m.method})`).join(", ");
  $("subtitle").textContent = `${models} · ${data.version}${data.server ? ` · server ${data.server}` : ""}`;
  const images = data.streams.reduce((sum, s) => sum + rate(s.series, data.interval), 0);
  const totals = [["streams", data.total], ["in memory", data.live], ["images/s", number(images)], ["queued", data.queued], ["MB", data.memory_mb]];
  $("totals").replaceChildren(...totals.map(([name, value]) =>
    element("div", {}, element("dt", { text: name }), element("dd", { text: value }))));
}

// Leave out the time before a stream began, but always show a minute.
function cut(data) {
  const length = data.series.images.length, first = data.series.images.findIndex((v) => v > 0);
  const from = Math.max(0, Math.min(first < 0 ? length : first, length - Math.ceil(60 / data.interval)));
  for (const [name, values] of Object.entries(data.series)) data.series[name] = values.slice(from);
  for (const row of data.classes ?? []) row.counts = row.counts.slice(from);
}

function headline(stream) {
  const s = stream.series;
  if (s.accuracy.some((v) => v !== null)) {
    const lines = [{ kind: "frozen", values: running(s.reference) }, { kind: "accent", values: running(s.accuracy) }];
    const frozen = latest(lines[0].values);
    return { value: percent(latest(lines[1].values)), versus: frozen === null ? "accuracy" : `frozen ${percent(frozen)}`, lines, range: [0, 1] };
  }
  if (s.estimated_accuracy.some((v) => v !== null)) {
    const values = running(s.estimated_accuracy);
    return { value: percent(latest(values)), versus: "estimated", lines: [{ kind: "accent", values }], range: [0, 1] };
  }
  const values = running(s.confidence);
  return { value: percent(latest(values)), versus: "confidence", lines: [{ kind: "blue", values }], range: [0, 1] };
}

function drawList(data) {
  const wanted = $("filter").value.toLowerCase();
  const shown = data.streams.filter((s) => `${s.name} ${s.model}`.toLowerCase().includes(wanted))
    .sort((a, b) => key(a).localeCompare(key(b)));
  if (!state.selected && shown.length && innerWidth > 720) select(shown[0], false);
  const focused = document.activeElement?.dataset?.key;
  $("list").replaceChildren(...shown.map((stream) => {
    cut({ ...stream, interval: data.interval, classes: [] });
    const head = headline(stream);
    const button = element("button", { class: "stream", type: "button", "data-key": key(stream), "aria-current": String(key(stream) === state.selected) },
      element("span", { class: "name" }, element("span", { class: `dot ${stream.state}`, title: stream.state === "live" ? "in memory" : "on disk" }), stream.name),
      element("span", { class: "value", text: head.value }),
      element("span", { class: "meta", text: `${stream.model} · ${number(rate(stream.series, data.interval))} images/s · step ${stream.step}` }),
      element("span", { class: "versus", text: head.versus }));
    button.append(sparkline(head.lines, head.range));
    button.addEventListener("click", () => select(stream, true));
    return element("li", {}, button);
  }));
  if (focused) [...document.querySelectorAll(".stream")].find((b) => b.dataset.key === focused)?.focus({ preventScroll: true });
  $("empty").hidden = data.streams.length > 0;
  $("hint").textContent = `curl -T picture.png -X POST -H 'Content-Type: image/png' ${location.origin}/v2/models/${Object.keys(data.models)[0]}/infer?stream=camera-1`;
}

function select(stream, move) {
  state.selected = key(stream);
  document.body.classList.toggle("open", move || document.body.classList.contains("open"));
  for (const button of document.querySelectorAll(".stream")) button.setAttribute("aria-current", String(button.dataset.key === state.selected));
  if (move && innerWidth <= 720) { $("detail").focus(); scrollTo(0, 0); }
  drawDetail();
}

function card(title, note, ...children) {
  return element("section", { class: "card" }, element("h3", {}, title, element("span", { class: "note", text: note ?? "" })), ...children);
}

function plot(height) { return element("div", { "data-height": height ?? 170 }); }

function legend(entries) {
  return element("ul", { class: "key" }, ...entries.map(([name, kind]) => element("li", { class: kind }, element("span", { text: name }))));
}

async function drawDetail() {
  if (!state.selected) return;
  const [model, name] = state.selected.split("\n");
  const data = await get(`/live/stream?${new URLSearchParams({ model, name })}`);
  if (state.selected !== `${model}\n${name}`) return;
  cut(data);
  const s = data.series, seconds = data.interval * s.images.length;
  const back = element("button", { class: "back", type: "button", text: "← Streams" });
  back.addEventListener("click", close);
  const accuracy = running(s.accuracy), frozen = running(s.reference);
  const rows = [["images", number(data.images)], ["images/s", number(rate(s, data.interval))], ["steps", number(data.step)],
    ["waiting", number(data.waiting)], ["skipped", percent(share(data.skipped, data.skipped + data.adapted + data.waiting))]];
  if (data.scored) rows.unshift(["adapted", percent(latest(accuracy)), "adapted"]);
  if (data.reference_scored) rows.splice(1, 0, ["frozen", percent(latest(frozen)), "frozen"]);
  const parts = [element("div", { class: "wide card" }, element("div", { class: "title" }, back, element("h2", { text: data.name }),
    element("p", { text: `${data.model} · ${data.method} · ${data.state === "live" ? "in memory" : "on disk"}` })), facts(rows))];
  const later = [];
  const add = (made, host, draw) => { parts.push(made); later.push(() => draw(host)); };
  if (data.scored) {
    const host = plot(240), made = card("Accuracy", "as the client measured it, over 24 s", host,
      legend([["adapted", "k-accent"], ...(data.reference_scored ? [["frozen model", "k-frozen"]] : [])]));
    made.classList.add("wide");
    add(made, host, (h) => lineChart(h, { lines: [{ kind: "frozen", values: frozen }, { kind: "accent", values: accuracy }], seconds, range: [0, 1], unit: "%", label: "Accuracy of the adapted and the frozen model" }));
  }
  const mix = plot();
  add(card("Predicted classes", "share of answers", mix, legend(data.classes.map((row) => [row.label, `c${row.slot}`]))), mix,
    (h) => shareChart(h, { rows: data.classes, seconds, label: "Share of each predicted class" }));
  const health = [["confidence", "confidence", "blue"], ["agreement", "agreement with the source", "violet"], ["estimated_accuracy", "estimated accuracy", "accent"], ["source_accuracy", "the frozen model's, estimated", "frozen"]]
    .filter(([field]) => s[field].some((v) => v !== null))
    .filter(([field]) => field !== "source_accuracy" || String(s.source_accuracy) !== String(s.agreement));
  const trust = plot();
  add(card("How sure it is", "", trust, legend(health.map(([, title, kind]) => [title, `k-${kind}`]))), trust,
    (h) => lineChart(h, { lines: health.map(([field, , kind]) => ({ kind, values: smooth(s[field], 5) })), seconds, range: [0, 1], unit: "%", label: "Confidence, agreement with the source and estimated accuracy" }));
  const entropy = plot();
  add(card("Entropy", "of the answers, in nats", entropy), entropy,
    (h) => lineChart(h, { lines: [{ kind: "blue", values: smooth(s.entropy, 5) }], seconds, label: "Entropy of the answers" }));
  const load = plot();
  add(card("Load", "", load, legend([["images/s", "k-accent"], ["batches waiting", "k-violet"], ["skipped/s", "k-bad"]])), load,
    (h) => lineChart(h, { lines: [{ kind: "accent", values: smooth(s.images.map((v) => v / data.interval), 3) }, { kind: "violet", values: s.lag }, { kind: "bad", values: s.skipped.map((v) => v / data.interval) }], seconds, label: "Images per second, waiting and skipped batches" }));
  const frames = element("ul", { class: "frames" }, ...data.frames.map((f) => element("li", {},
    element("img", { src: f.picture, alt: `frame answered ${f.label}` }), element("p", { text: f.label, title: f.label }), element("p", { class: "sure", text: percent(f.confidence) }))));
  const shown = card("Last frames", "and their answers", data.frames.length ? frames : element("p", { class: "none", text: "None in memory." }));
  const events = element("ul", { class: "events", tabindex: "0", "aria-label": "Events of this stream" }, ...data.events.slice(0, 30).map(eventRow));
  parts.push(shown, card("Events", "of this stream", data.events.length ? events : element("p", { class: "none", text: "None yet." })));
  const scrolled = document.querySelector("#detail .events")?.scrollTop ?? 0;
  const focus = document.activeElement?.closest?.("#detail") ? document.activeElement.className : null;
  $("detail").replaceChildren(...parts);
  for (const draw of later) draw();
  if (focus) $("detail").querySelector(`.${focus.split(" ")[0]}`)?.focus({ preventScroll: true });
  const list = document.querySelector("#detail .events");
  if (list) list.scrollTop = scrolled;
}

function eventRow(event) {
  const { time, event: kind, model, stream, server, ...rest } = event;
  const told = Object.entries(rest).map(([k, v]) => `${k} ${typeof v === "number" ? Math.round(v * 1000) / 1000 : v}`).join(", ");
  const words = kind.replaceAll("_", " ");
  return element("li", {}, element("time", { text: new Date(1000 * time).toLocaleTimeString([], { hour12: false }) }),
    element("span", kind.startsWith("guard") ? { class: "guard" } : {}, told ? `${words}: ${told}` : words));
}

function close() {
  document.body.classList.remove("open");
  [...document.querySelectorAll(".stream")].find((b) => b.dataset.key === state.selected)?.focus();
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  if (!step || event.target.tagName === "INPUT" || event.target.closest(".events")) return;
  const buttons = [...document.querySelectorAll(".stream")];
  if (!buttons.length) return;
  const at = buttons.findIndex((b) => b.dataset.key === state.selected);
  const next = buttons[Math.min(buttons.length - 1, Math.max(0, at + step))];
  event.preventDefault();
  next.focus();
  if (innerWidth > 720) next.click();
});
$("filter").addEventListener("input", () => state.overview && drawList(state.overview));

let timer = 0;
async function tick() {
  clearTimeout(timer);
  if (!document.hidden) {
    try {
      state.overview = await get("/live");
      drawTotals(state.overview);
      drawList(state.overview);
      await drawDetail();
      $("status").textContent = "live";
      $("status").className = "ok";
    } catch (error) {
      $("status").textContent = error.message === "Failed to fetch" ? "no connection" : `waiting: ${error.message}`;
      $("status").className = "bad";
    }
  }
  timer = setTimeout(tick, 1000);
}
document.addEventListener("visibilitychange", () => { if (!document.hidden) tick(); });
addEventListener("resize", () => { if (state.overview) drawDetail().catch(() => {}); });
tick();
