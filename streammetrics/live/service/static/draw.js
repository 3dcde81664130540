// A line over time with its bands, drawn by Plotly; and the same points as a table.

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

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

export const moment = (text) => text.slice(0, 16).replace("T", " ");

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

export function drawLine(box, time, points, marks) {
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
  const axis = { color: quiet, gridcolor: colour("--line"), zeroline: false, fixedrange: true };
  const length = new Date(time.at(-1)) - new Date(time[0]), days = length / 86400000;
  const least = days > 2 ? 86400000 : 60000; // what labels tell apart: a day, a minute
  const layout = {
    margin: { l: 44, r: 8, t: 8, b: 24 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: quiet },
    xaxis: { ...axis, type: "date", showgrid: false, nticks: 6, tickformat: days > 2 ? "%-d %b" : "%H:%M",
      ...(length < 6 * least ? { dtick: least } : {}) },
    yaxis: { ...axis, nticks: 5, tickformat: ".3~g" },
    hovermode: "x", dragmode: false,
    ...marked(marks.filter((mark) => mark.time >= time[0] && mark.time.slice(0, 19) <= time.at(-1))),
  };
  window.Plotly.react(box, traces, layout, { displayModeBar: false, responsive: true });
}

function marked(marks) {
  const x = ({ time }) => time.slice(0, 19), quiet = colour("--quiet");
  return {
    shapes: marks.map((mark) => ({
      type: "line", x0: x(mark), x1: x(mark), yref: "paper", y0: 0, y1: 1,
      line: { color: quiet, width: 1, dash: "dot" },
    })),
    annotations: marks.map((mark) => ({
      x: x(mark), yref: "paper", y: 1, yanchor: "top", xanchor: "left", textangle: 90, showarrow: false,
      text: plain(mark.text.length > 20 ? `${mark.text.slice(0, 19)}…` : mark.text),
      font: { size: 11, color: quiet }, borderpad: 0,
    })),
  };
}

export function fillTable(table, header, rows) {
  const line = (cells, first) => {
    const row = document.createElement("tr");
    cells.forEach((text, at) => {
      const cell = document.createElement(first || at === 0 ? "th" : "td");
      cell.scope = first ? "col" : "row";
      if (!first && at) cell.removeAttribute("scope");
      cell.textContent = text;
      row.append(cell);
    });
    return row;
  };
  table.tHead.replaceChildren(line(header, true));
  table.tBodies[0].replaceChildren(...rows.map((cells) => line(cells, false)));
}

export const whenSchemeChanges = (call) => dark.addEventListener("change", call);
