// Charts as SVG, drawn from plain arrays; null is a gap.
const NS = "http://www.w3.org/2000/svg";

export function node(name, attributes = {}, ...children) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A mean over the last `width` points that are there: intervals hold few images.
export function smooth(values, width) {
  return values.map((value, i) => {
    if (value === null) return null;
    const near = values.slice(Math.max(0, i - width + 1), i + 1).filter((v) => v !== null);
    return near.reduce((sum, v) => sum + v, 0) / near.length;
  });
}

function path(values, x, y) {
  let drawn = "", down = false;
  values.forEach((value, i) => {
    if (value === null) { if (values.slice(i).some((v) => v !== null) && down) return; down = false; return; }
    drawn += `${down ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
    down = true;
  });
  return drawn;
}

export function sparkline(lines, range) {
  const width = 300, height = 34, length = lines[0].values.length;
  const all = lines.flatMap((line) => line.values).filter((v) => v !== null);
  const low = range ? range[0] : Math.min(0, ...all), high = range ? range[1] : Math.max(1e-9, ...all);
  const x = (i) => (i / (length - 1)) * width, y = (v) => height - 2 - ((v - low) / (high - low || 1)) * (height - 4);
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const line of lines) svg.append(node("path", { class: `line s-${line.kind}`, d: path(line.values, x, y) }));
  return svg;
}

const percent = (v) => `${Math.round(100 * v)} %`;
const plain = (v) => (v >= 100 ? Math.round(v) : v >= 10 ? v.toFixed(0) : v.toFixed(v < 1 ? 2 : 1)).toString();

function frame(host, seconds, label) {
  const width = Math.max(240, host.clientWidth || 480), height = host.dataset.height ? +host.dataset.height : 170;
  const svg = node("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  const box = { left: 38, right: 8, top: 8, bottom: 22, width, height };
  const inner = { w: width - box.left - box.right, h: height - box.top - box.bottom };
  const marks = seconds >= 180 ? 60 : seconds >= 90 ? 30 : 15;
  for (let ago = 0; ago < seconds; ago += marks) {
    const at = box.left + inner.w * (1 - ago / seconds);
    if (at < box.left + 14) continue;
    const text = ago === 0 ? "now" : `-${ago % 60 ? `${ago} s` : `${ago / 60} min`}`;
    svg.append(node("text", { x: at, y: height - 4, "text-anchor": ago === 0 ? "end" : "middle" }, text));
  }
  return { svg, box, inner };
}

function scale(svg, box, inner, low, high, format) {
  const y = (v) => box.top + inner.h * (1 - (v - low) / (high - low || 1));
  for (const share of [0, 0.5, 1]) {
    const value = low + share * (high - low);
    svg.append(
      node("line", { class: "grid", x1: box.left, x2: box.width - box.right, y1: y(value), y2: y(value) }),
      node("text", { x: box.left - 6, y: y(value) + 4, "text-anchor": "end" }, format(value)),
    );
  }
  return y;
}

export function lineChart(host, { lines, seconds, range, unit, label }) {
  const { svg, box, inner } = frame(host, seconds, label);
  const all = lines.flatMap((line) => line.values).filter((v) => v !== null);
  const low = range ? range[0] : 0, high = range ? range[1] : nice(Math.max(...all, 1e-9));
  const y = scale(svg, box, inner, low, high, unit === "%" ? percent : plain);
  const length = lines[0].values.length, x = (i) => box.left + (i / (length - 1)) * inner.w;
  for (const line of lines) {
    const last = line.values.findLastIndex((v) => v !== null);
    if (last < 0) continue;
    const clipped = line.values.map((v) => (v === null ? null : Math.min(high, Math.max(low, v))));
    svg.append(node("path", { class: `line s-${line.kind}`, d: path(clipped, x, y) }));
    svg.append(node("circle", { class: `end-${line.kind}`, cx: x(last), cy: y(clipped[last]), r: 3.5 }));
  }
  host.replaceChildren(svg);
}

function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

// Shares of classes over time, stacked to one.
export function shareChart(host, { rows, seconds, label, width = 5 }) {
  const { svg, box, inner } = frame(host, seconds, label);
  const y = scale(svg, box, inner, 0, 1, percent);
  const length = rows[0]?.counts.length ?? 2, x = (i) => box.left + (i / (length - 1)) * inner.w;
  const sums = rows.map((row) => row.counts.map((_, i) => row.counts.slice(Math.max(0, i - width + 1), i + 1).reduce((a, b) => a + b, 0)));
  const totals = Array.from({ length }, (_, i) => sums.reduce((sum, row) => sum + row[i], 0));
  const base = new Array(length).fill(0);
  rows.forEach((row, r) => {
    let shape = "";
    const top = base.map((value, i) => value + (totals[i] ? sums[r][i] / totals[i] : 0));
    let i = 0;
    while (i < length) {
      if (!totals[i]) { i += 1; continue; }
      let end = i;
      while (end + 1 < length && totals[end + 1]) end += 1;
      const upper = [], lower = [];
      for (let k = i; k <= end; k += 1) { upper.push(`${x(k).toFixed(1)} ${y(top[k]).toFixed(1)}`); lower.unshift(`${x(k).toFixed(1)} ${y(base[k]).toFixed(1)}`); }
      shape += `M${[...upper, ...lower].join("L")}Z`;
      i = end + 1;
    }
    svg.append(node("path", { class: `c${row.slot}`, d: shape }));
    top.forEach((value, k) => { base[k] = value; });
  });
  host.replaceChildren(svg);
}
