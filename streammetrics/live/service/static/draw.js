// A line over time with its bands, drawn by Plotly; and tables.

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const touch = window.matchMedia("(pointer: coarse)"); // a finger scrolls, and does not zoom
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function shown(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2);
  return size < 1 ? value.toFixed(3) : value.toPrecision(4);
}

export function between(low, high) {
  return `${shown(low)} – ${shown(high)}`;
}

const transparent = (hex, share) => {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${r},${g},${b},${share})`;
};

// Where a column has values without a gap between them: pairs of the first place and the one after.
export function runs(values) {
  const found = [];
  values.forEach((value, at) => {
    if (value === null) return;
    if (at && values[at - 1] !== null) found.at(-1)[1] = at + 1;
    else found.push([at, at + 1]);
  });
  return found;
}

// A band is a polygon for each run: along its low ends, and back along its high ones. Where a point
// is alone, it is a bar as wide as the line.
function band(time, low, high, share) {
  const fillcolor = transparent(colour("--band"), share);
  const ends = low.map((value, at) => (value === null || high[at] === null ? null : value));
  return runs(ends).map(([first, end]) => {
    const there = time.slice(first, end), back = time.slice(first, end).reverse();
    const alone = end - first < 2;
    return {
      x: [...there, ...back], y: [...low.slice(first, end), ...high.slice(first, end).reverse()],
      mode: "lines", line: { width: alone ? 3 : 0, color: fillcolor },
      fill: alone ? "none" : "toself", fillcolor, hoverinfo: "skip", showlegend: false,
    };
  });
}

// Plotly reads a few tags in texts.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const short = (text) => plain(text.length > 20 ? `${text.slice(0, 19)}…` : text);

// The columns of the points in a range of times, and one on each side of it.
export function within(time, columns, range) {
  if (!range) return [time, columns];
  const first = Math.max(time.findIndex((at) => at >= range[0]) - 1, 0);
  const after = time.findIndex((at) => at > range[1]);
  const end = after < 0 ? time.length : after + 1;
  const cut = Object.entries(columns).map(([name, values]) => [name, values.slice(first, end)]);
  return [time.slice(first, end), Object.fromEntries(cut)];
}

// `beside` has the other lines, `limits` those of rules, `fired` pairs of times, `range` the zoom.
export function drawLine(box, times, columns, { marks, beside, limits, fired, range }) {
  const [time, points] = within(times, columns, range);
  const ends = range ?? [time[0], time.at(-1)], inside = (at) => at >= ends[0] && at <= ends[1];
  const quiet = colour("--quiet");
  const traces = [];
  if (points.sure_low.some((value) => value !== null)) {
    traces.push(...band(time, points.sure_low, points.sure_high, 0.16));
  }
  const wide = points.low.some((low, at) => low !== null && low !== points.high[at]);
  if (wide) traces.push(...band(time, points.low, points.high, 0.4));
  const alone = new Set(runs(points.value).filter(([first, end]) => end - first < 2).map(([first]) => first));
  traces.push({
    x: time, y: points.value, mode: alone.size ? "lines+markers" : "lines", showlegend: false,
    line: { color: colour("--accent"), width: 2 },
    marker: { color: colour("--accent"), size: time.map((_, at) => (alone.has(at) ? 7 : 0)) },
    hovertemplate: "%{x|%d %b %H:%M}  <b>%{y:.4~g}</b><extra></extra>",
  });
  for (const { name, ink, dash, time: when, value } of beside) {
    const [x, { y }] = within(when, { y: value }, ends);
    traces.push({
      x, y, mode: "lines", showlegend: false, line: { color: colour(ink), width: 1.5, dash },
      hovertemplate: `${short(name)}  <b>%{y:.4~g}</b><extra></extra>`,
    });
  }
  const axis = { color: quiet, gridcolor: colour("--line"), zeroline: false };
  const length = new Date(ends[1]) - new Date(ends[0]), days = length / 86400000;
  const least = days > 2 ? 86400000 : 60000; // what labels tell apart: a day, a minute
  const bad = colour("--bad");
  const layout = {
    margin: { l: 44, r: 8, t: 8, b: 24 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: quiet },
    xaxis: { ...axis, type: "date", showgrid: false, nticks: 6, tickformat: days > 2 ? "%-d %b" : "%H:%M",
      fixedrange: touch.matches, ...(length ? { range: ends } : {}), ...(length < 6 * least ? { dtick: least } : {}) },
    yaxis: { ...axis, nticks: 5, tickformat: ".3~g", fixedrange: true },
    hovermode: "x", dragmode: touch.matches ? false : "zoom",
    shapes: [
      ...limits.map(({ limit }) => ({
        type: "line", xref: "paper", x0: 0, x1: 1, y0: limit, y1: limit, line: { color: bad, width: 1, dash: "dash" },
      })),
      ...fired.filter(([from, to]) => to >= ends[0] && from <= ends[1]).map(([from, to]) => ({
        type: "rect", x0: from < ends[0] ? ends[0] : from, x1: to > ends[1] ? ends[1] : to, yref: "paper", y0: 0, y1: 1,
        fillcolor: transparent(bad, 0.14), line: { width: 0 }, layer: "below",
      })),
      ...marks.filter(({ time: at }) => inside(at)).map(({ time: at }) => ({
        type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: quiet, width: 1, dash: "dot" },
      })),
    ],
    annotations: [
      ...limits.map(({ name, limit }) => ({
        xref: "paper", x: 0, xanchor: "left", y: limit, yanchor: "bottom", showarrow: false,
        text: short(name), font: { size: 11, color: bad }, borderpad: 0,
      })),
      ...marks.filter(({ time: at }) => inside(at)).map(({ time: at, text }) => ({
        x: at, yref: "paper", y: 1, yanchor: "top", xanchor: "left", textangle: 90, showarrow: false,
        text: short(text), font: { size: 11, color: quiet }, borderpad: 0,
      })),
    ],
  };
  window.Plotly.react(box, traces, layout, { displayModeBar: false, responsive: true, doubleClick: false });
}

// The part of the chart that the pointer chose, as two texts; nothing for the whole of it.
export function whenZoomed(box, call) {
  box.on("plotly_relayout", (change) => {
    if ("xaxis.range[0]" in change) call([change["xaxis.range[0]"], change["xaxis.range[1]"]]);
  });
  box.on("plotly_doubleclick", () => call(null));
}

// Plotly's own PNG needs images from blob:, which the content security policy forbids.
export async function picture(box, name) {
  const sheet = colour("--sheet");
  const layout = {
    ...box.layout, title: { text: plain(name), font: { size: 16, color: colour("--ink") } },
    margin: { l: 56, r: 24, t: 56, b: 40 }, paper_bgcolor: sheet, plot_bgcolor: sheet,
  };
  const image = new Image(), canvas = document.createElement("canvas");
  image.src = await window.Plotly.toImage({ data: box.data, layout }, { format: "svg", width: 960, height: 480 });
  await image.decode();
  [canvas.width, canvas.height] = [1920, 960];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

// A cell is a text, or an element.
export function fillTable(table, header, rows, keys = 1) {
  const line = (cells, first) => {
    const row = document.createElement("tr");
    cells.forEach((content, at) => {
      const cell = document.createElement(first || at < keys ? "th" : "td");
      if (first || at < keys) cell.scope = first ? "col" : "row";
      cell.append(content);
      row.append(cell);
    });
    return row;
  };
  table.tHead.replaceChildren(line(header, true));
  table.tBodies[0].replaceChildren(...rows.map((cells) => line(cells, false)));
}

export const whenSchemeChanges = (call) => dark.addEventListener("change", call);
