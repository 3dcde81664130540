// Asks for the metrics each second and shows them; text from elsewhere is only ever text.
import { between, drawLine, fillTable, moment, shown, whenSchemeChanges } from "./draw.js";

const EVERY = 1000; // milliseconds between two questions
const PATIENCE = 20000; // after which there is no answer; a long history takes some seconds at first
const at = (id) => document.getElementById(id);
const cards = new Map();
const tags = new Map(); // of the answers that are shown
let line = null; // the last series
let marks = []; // of the charts
let changes = []; // of alerts
let heard = null; // when the service answered last

async function ask(path) {
  const token = sessionStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (tags.has(path)) headers["If-None-Match"] = tags.get(path);
  const stop = AbortSignal.timeout(PATIENCE);
  const answer = await fetch(path, { headers, signal: stop, cache: "no-store" });
  at("ask").hidden = answer.status !== 401;
  if (answer.status === 304) return null;
  if (!answer.ok) throw new Error((await answer.json()).error ?? answer.statusText);
  const found = await answer.json();
  tags.set(path, answer.headers.get("etag"));
  return found;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function pairs(list, entries) {
  list.replaceChildren(...entries.flatMap(([name, value]) => {
    const term = document.createElement("dt"), told = document.createElement("dd");
    term.textContent = name;
    told.textContent = value;
    return [term, told];
  }));
}

function cardOf(name) {
  if (!cards.has(name)) {
    const card = at("card").content.firstElementChild.cloneNode(true);
    card.querySelector("h2").textContent = name;
    card.querySelector(".chart").setAttribute("aria-label", `${name} over time; the table below has the points`);
    card.querySelector(".scroll").setAttribute("aria-label", `${name} as a table`);
    card.querySelector("summary").setAttribute("aria-label", `Table of ${name}`);
    card.querySelector("button").setAttribute("aria-label", `Download ${name} as CSV`);
    card.querySelector("button").addEventListener("click", () => download(name));
    at("metrics").append(card);
    cards.set(name, card);
  }
  return cards.get(name);
}

function showNow(now) {
  document.title = now.title;
  put(at("title"), now.title);
  put(at("about"), `Last ${now.window}, until ${moment(now.end)} UTC, ${shown(now.n_rows)} rows`);
  at("empty").hidden = now.n_rows + now.coverage.predicted > 0;
  for (const [name, found] of Object.entries(now.metrics)) {
    const card = cardOf(name);
    put(card.querySelector(".value"), shown(found.value));
    const told = [];
    if (found.sure_low !== null) told.push(["95 % confidence", between(found.sure_low, found.sure_high)]);
    if (found.low !== found.high) told.push(["certainly in", between(found.low, found.high)]);
    if (found.possible && found.possible[0] !== found.possible[1]) {
      told.push(["with all labels", between(...found.possible)]);
    }
    if (found.estimated) {
      const { value, low, high } = found.estimated;
      told.push(["estimated", low === null ? shown(value) : `${shown(value)}: ${between(low, high)}`]);
    }
    pairs(card.querySelector(".sure"), told);
  }
  showCoverage(now.coverage);
}

const PARTS = [["labelled", "labelled"], ["pending", "waiting"], ["expired", "never came"], ["displaced", "no room"]];

function showCoverage(found) {
  at("coverage").hidden = !found.predicted;
  if (!found.predicted) return;
  const parts = PARTS.filter(([key]) => key !== "displaced" || found.displaced);
  const percent = (100 * found.coverage).toFixed(1);
  put(at("share"), `${percent} % of ${shown(found.predicted)} predictions have their label`);
  at("bar").setAttribute("aria-label", parts.map(([key, word]) => `${word} ${found[key]}`).join(", "));
  at("bar").replaceChildren(...parts.filter(([key]) => found[key]).map(([key]) => {
    const piece = document.createElement("span");
    piece.className = key;
    piece.style.flexGrow = found[key];
    return piece;
  }));
  const rest = [["corrected", "corrected"], ["conflicting", "in conflict"], ["late", "too late"]];
  const entries = [
    ...parts.map(([key, word]) => [word, shown(found[key]), key]),
    ...rest.filter(([key]) => found[key]).map(([key, word]) => [word, shown(found[key])]),
    ["median delay", period(found.delay_median)], ["99 % within", period(found.delay_p99)],
  ];
  at("counts").replaceChildren(...entries.map(([word, value, key]) => {
    const [pair, term, told] = ["li", "span", "b"].map((tag) => document.createElement(tag));
    if (key) {
      const mark = document.createElement("i");
      mark.className = key;
      term.append(mark);
    }
    term.append(word);
    told.textContent = value;
    pair.append(term, told);
    return pair;
  }));
}

function period(seconds) {
  if (seconds === null) return "–";
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${(seconds / size).toPrecision(2)} ${unit}`;
  }
  return `${seconds.toPrecision(2)} s`;
}

function showLine() {
  if (!line) return;
  const times = line.time.map((text) => text.slice(0, 19));
  for (const [name, card] of cards) {
    const points = line.metrics[name];
    const box = card.querySelector(".chart");
    const drawn = points?.value.some((value) => value !== null) ?? false;
    box.hidden = !drawn;
    card.querySelector("details").hidden = !points;
    if (!points) continue; // no row has come yet
    if (drawn) drawLine(box, times, points, marks);
    const rows = times.map((time, n) => [
      moment(line.start[n]), moment(time), shown(points.value[n]), between(points.sure_low[n], points.sure_high[n]),
      between(points.low[n], points.high[n]), shown(line.n_rows[n]),
    ]).reverse();
    fillTable(card.querySelector("table"), ["From (UTC)", "Until", "Value", "95 % confidence", "Certainly in", "Rows"], rows);
  }
}

function download(name) {
  const parts = Object.entries(line.metrics[name]);
  const header = ["start", "time", "n_rows", "coverage", ...parts.map(([part]) => part)];
  const columns = [line.start, line.time, line.n_rows, line.coverage, ...parts.map(([, values]) => values)];
  const rows = line.time.map((_, n) => columns.map((column) => column[n] ?? ""));
  const text = [header, ...rows].map((row) => row.join(",") + "\r\n").join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = `${name}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), EVERY);
}

function showHistory() {
  const rows = [
    ...changes.map(({ time, name, state, silenced }) => [time, name, state, silenced ?? ""]),
    ...marks.map(({ time, text }) => [time, text, "mark", ""]),
  ].sort(([one], [other]) => (one < other ? 1 : -1));
  at("history").hidden = !rows.length;
  fillTable(at("history").querySelector("table"), ["Time (UTC)", "Alert or mark", "State", "Silenced"],
    rows.map(([time, ...rest]) => [moment(time), ...rest]));
}

function showAlerts(found) {
  changes = found.alerts.flatMap(({ name, history }) => history.map((change) => ({ name, ...change })));
  showHistory();
  const box = at("alerts");
  box.hidden = !found.alerts.length;
  // Reasons change each second: what is read out is in which state which alert is.
  put(at("spoken"), found.alerts.map((alert) => `${alert.state}: ${alert.name}`).join("; "));
  box.replaceChildren(...found.alerts.map((alert) => {
    const row = document.createElement("div");
    row.className = `alert ${{ firing: "firing", ok: "ok" }[alert.state] ?? "none"}`;
    const [state, rule, since] = ["b", "p", "span"].map((tag) => document.createElement(tag));
    const why = document.createElement("span");
    state.textContent = alert.state;
    why.textContent = alert.why;
    rule.append(alert.name, " ", why);
    if (alert.runbook) {
      const link = document.createElement("a");
      link.href = alert.runbook; // the configuration allows http and https alone
      link.rel = "noreferrer";
      link.textContent = "Runbook";
      link.setAttribute("aria-label", `Runbook of ${alert.name}`);
      rule.append(" ", link);
    }
    since.textContent = alert.since ? `since ${moment(alert.since)} UTC` : "";
    row.append(state, rule, since);
    return row;
  }));
}

function showSlices(found) {
  const some = found.slices.filter((part) => part.rows.length);
  at("slices").hidden = !some.length;
  at("slice-tables").replaceChildren(...some.map((part) => {
    const box = document.createElement("div");
    box.className = "scroll";
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `By ${part.by.join(", ")}`);
    const table = document.createElement("table");
    table.append(document.createElement("thead"), document.createElement("tbody"));
    fillTable(table, part.header, part.rows.map((row) => row.map((cell) => typeof cell === "number" ? shown(cell) : String(cell ?? "–"))));
    box.append(table);
    return box;
  }));
}

const QUESTIONS = [
  ["api/now", showNow],
  ["api/marks", (found) => { marks = found.marks; showLine(); showHistory(); }],
  ["api/series", (found) => { line = found; showLine(); }],
  ["api/alerts", showAlerts],
  ["api/slices", showSlices],
];

function tell(on, text) {
  const status = at("status");
  status.className = on ? "on" : "off";
  document.body.classList.toggle("stale", !on);
  put(status, text);
}

async function round() {
  try {
    for (const [path, show] of QUESTIONS) {
      const found = await ask(path);
      if (found) show(found);
    }
    heard = new Date();
    tell(true, "live");
  } catch (error) {
    const since = heard ? ` since ${heard.toLocaleTimeString("en-GB")}` : "";
    tell(false, error instanceof TypeError || error.name === "TimeoutError" ? `no answer${since}` : error.message);
  }
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", at("token").value);
  at("token").value = "";
});
whenSchemeChanges(showLine);

for (;;) {
  if (!document.hidden) await round();
  await new Promise((done) => setTimeout(done, EVERY));
}
