// Asks for the metrics each second and shows them; text from elsewhere is only ever text.
import { between, drawLine, fillTable, picture, shown, whenSchemeChanges, whenZoomed } from "./draw.js";
import { choose, drawn, moment, stamp, toggle, unstamped, view, zone } from "./view.js";

const EVERY = 1000; // milliseconds between two questions
const PATIENCE = 20000; // after which there is no answer; a long history takes some seconds at first
const POINTS = 300; // of a chart, about
const WORDS = { "1d": "yesterday", "7d": "last week" };
const INKS = ["--one", "--two", "--three", "--four"]; // of slices
const inkOf = new Map();
const at = (id) => document.getElementById(id);
const controls = at("controls").querySelector("form").elements;
const cards = new Map();
const tags = new Map(); // of the answers that are shown
const besides = new Map(); // other series, by path
const sorts = new Map(); // column and direction of a table of slices
let able = null; // what the page can show
let current = null; // the newest window
let line = null; // the last series
let marks = []; // of the charts
let alerts = [];
let tables = []; // slices
const rivals = new Map(); // differences to other models, by name
let zoom = null; // milliseconds of the first and the last time shown, of all charts
let heard = null; // when the service answered last

class Refusal extends Error {}

async function ask(path) {
  const token = sessionStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (tags.has(path)) headers["If-None-Match"] = tags.get(path);
  const stop = AbortSignal.timeout(PATIENCE);
  const answer = await fetch(path, { headers, signal: stop, cache: "no-store" });
  at("ask").hidden = answer.status !== 401;
  if (answer.status === 304) return null;
  if (!answer.ok) {
    const why = (await answer.json()).error ?? answer.statusText;
    throw [400, 422].includes(answer.status) ? new Refusal(why) : new Error(why);
  }
  const found = await answer.json();
  tags.set(path, answer.headers.get("etag"));
  return found;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function make(tag, className, ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

// Replace what is in a box, and keep the focus on the element with the same key.
function fill(box, children) {
  const key = box.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  box.replaceChildren(...children);
  if (key !== undefined) [...box.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key)?.focus({ preventScroll: true });
}

function offer(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), EVERY);
}

// Text that a spreadsheet would take for a formula gets a quote in front.
function csv(rows) {
  const cell = (value) => {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return new Blob([rows.map((row) => row.map(cell).join(",") + "\r\n").join("")], { type: "text/csv" });
}

// --- the view ------------------------------------------------------------------------------------

function showView(found) {
  able = found;
  at("controls").hidden = false;
  const choice = at("models").querySelector("select");
  at("models").hidden = found.models.length < 2;
  fill(choice, found.models.map((name) => new Option(name)));
  choice.value = found.model;
  choice.onchange = () => location.assign(`../${choice.value}/${location.search}`);
  const options = {
    window: [["", `as configured, ${found.window}`], ...found.windows.map(({ window }) => [window, window])],
    span: [["", "as configured"], ...Object.keys(found.spans).map((span) => [span, span])],
    compare: [["", "nothing"], ...Object.entries(WORDS), ...Object.keys(found.references).map((name) => [`reference ${name}`, name])],
  };
  for (const [name, every] of Object.entries(options)) {
    fill(controls[name], every.map(([value, text]) => new Option(text, value)));
  }
  for (const name of Object.keys(view)) controls[name].value = view[name];
  tellView();
}

function tellView() {
  const names = [view.window && `window ${view.window}`, view.span && `span ${view.span}`,
    view.compare && `beside ${controls.compare.selectedOptions[0]?.text}`, view.times && zone(), view.find && `“${view.find}”`];
  put(at("chosen"), names.filter(Boolean).map((name) => `, ${name}`).join(""));
}

const windowed = (path) => (view.window ? `${path}?window=${encodeURIComponent(view.window)}` : path);

// The parameters of the charts' windows: the distance of points follows from the span.
function asked() {
  if (!able || !(view.window || view.span)) return {};
  const window = view.window || able.window;
  const every = Object.entries(able.windows.find((each) => each.window === window)?.every ?? { [able.every]: 1 });
  every.sort((one, other) => one[1] - other[1]);
  if (view.span) {
    const wanted = (able.spans[view.span] ?? 0) / POINTS;
    return { window, span: view.span, every: (every.find(([, seconds]) => seconds >= wanted) ?? every.at(-1))[0] };
  }
  const [text, seconds] = every.find(([name]) => name === able.every) ?? every[0];
  const fitting = Object.entries(able.spans).filter(([, length]) => length <= seconds * POINTS);
  return { window, every: text, span: (fitting.at(-1) ?? Object.entries(able.spans)[0])[0] };
}

function seriesPath(more = {}) {
  const parameters = { ...asked(), ...more };
  if (line?.time.length && Object.keys(more).length && !parameters.span) {
    const hours = Math.ceil((Date.parse(line.time.at(-1)) - Date.parse(line.time[0])) / 3600000) + 1;
    parameters.span = `${hours}h`;
  }
  const query = new URLSearchParams(parameters).toString();
  return query ? `api/series?${query}` : "api/series";
}

// The other lines: what they are called and look like, and where their points are.
function others() {
  const found = [];
  if (view.compare in WORDS) {
    found.push({ name: WORDS[view.compare], path: seriesPath({ ago: view.compare }), shift: view.compare === "1d" ? 86400000 : 604800000, ink: "--quiet", dash: "dash" });
  } else if (view.compare) {
    found.push({ name: view.compare.slice("reference ".length), ink: "--quiet", dash: "dash" });
  }
  const inks = INKS.filter((ink) => !drawn.some((slice) => ink === inkOf.get(slice)));
  for (const slice of drawn) {
    if (!inkOf.has(slice)) inkOf.set(slice, inks.shift());
    found.push({ name: nameOf(slice), slice, path: seriesPath({ slice }), shift: 0, ink: inkOf.get(slice), dash: "solid" });
  }
  for (const slice of inkOf.keys()) if (!drawn.includes(slice)) inkOf.delete(slice);
  return found;
}

function nameOf(slice) {
  try {
    return Object.entries(JSON.parse(slice)).map(([by, key]) => `${by} ${key ?? "–"}`).join(", ");
  } catch {
    return slice;
  }
}

// The points of another line for a metric, at times in milliseconds, shifted onto those of now.
function pointsOf(other, name) {
  if (!other.path) {
    const found = able?.references[other.name]?.[name];
    return found && line?.time.length ? { time: [line.time[0], line.time.at(-1)].map(Date.parse), value: [found.value, found.value] } : null;
  }
  const series = besides.get(other.path), points = series?.metrics[name];
  return points ? { time: series.time.map((text) => Date.parse(text) + other.shift), value: points.value } : null;
}

// The value of the last point at or before a time.
function before({ time, value }, when) {
  let low = 0, high = time.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time[middle] <= when) low = middle + 1;
    else high = middle;
  }
  return low ? value[low - 1] : null;
}

function showLines() {
  const found = others();
  at("lines").hidden = !found.length;
  fill(at("lines"), found.map(({ name, slice, ink, dash }) => {
    const mark = make("i", `ink ${dash}`);
    mark.style.color = `var(${ink})`;
    const row = make("li", "", mark, name);
    const remove = make("button", "", "Remove");
    remove.type = "button";
    remove.dataset.key = name;
    remove.setAttribute("aria-label", `Remove the line of ${name}`);
    remove.addEventListener("click", () => { if (slice) toggle(slice); else choose("compare", ""); change(); });
    row.append(remove);
    return row;
  }));
}

// --- metrics -------------------------------------------------------------------------------------

const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const card = target.closest(".card");
    card.near = isIntersecting;
    if (isIntersecting && card.stale) drawCard(card);
  }
}, { rootMargin: "1000px" });

function cardOf(name) {
  if (!cards.has(name)) {
    const card = at("card").content.firstElementChild.cloneNode(true);
    card.id = `metric-${cards.size + 1}`;
    card.name = name;
    card.querySelector("h3").textContent = name;
    card.querySelector(".chart").setAttribute("aria-label", `${name} over time; the table below has the points`);
    card.querySelector(".scroll").setAttribute("aria-label", `${name} as a table`);
    card.querySelector("summary").setAttribute("aria-label", `Table of ${name}`);
    const [asText, asPicture] = card.querySelectorAll("button");
    asText.setAttribute("aria-label", `Download ${name} as CSV`);
    asPicture.setAttribute("aria-label", `Download ${name} as PNG`);
    asText.addEventListener("click", () => download(name));
    asPicture.addEventListener("click", async () => offer(await picture(card.querySelector(".chart"), name), `${name}.png`));
    card.querySelector("details").addEventListener("toggle", () => drawTable(card));
    cards.set(name, card);
    near.observe(card);
  }
  return cards.get(name);
}

function showNow(now) {
  current = now;
  document.title = now.title;
  put(at("title"), now.title);
  at("empty").hidden = now.n_rows + now.coverage.predicted > 0;
  showCards();
  showCoverage(now.coverage);
}

// Changes come newest first.
const inOrder = (alert) => ({ ...alert, history: [...alert.history].reverse() });
const rulesOf = (name) => alerts.filter(({ metric }) => metric === name);

// How wrong a metric is: an alert on it fires, has no data, or it has no value.
function wrong(name) {
  const states = rulesOf(name).map(({ state }) => state);
  if (states.includes("firing")) return 3;
  if (states.includes("no data")) return 2;
  return current.metrics[name].value === null ? 1 : 0;
}

function showCards() {
  if (!current) return;
  const firing = Object.keys(current.metrics).filter((name) => wrong(name) === 3).length;
  const total = Object.keys(current.metrics).length;
  put(at("about"), `Last ${current.window}, until ${moment(current.end)} ${zone()}, ${shown(current.n_rows)} rows`
    + (firing ? `; ${firing} of ${total} metrics alert` : ""));
  const besideNow = others();
  for (const [name, found] of Object.entries(current.metrics)) {
    const card = cardOf(name);
    put(card.querySelector(".value"), shown(found.value));
    const told = found.why ? [["not read", found.why]] : [];
    if (found.sure_low !== null) told.push(["95 % confidence", between(found.sure_low, found.sure_high)]);
    if (found.low !== found.high) told.push(["certainly in", between(found.low, found.high)]);
    if (found.possible && found.possible[0] !== found.possible[1]) {
      told.push(["with all labels", between(...found.possible)]);
    }
    if (found.estimated) {
      const { value, low, high } = found.estimated;
      told.push(["estimated", low === null ? shown(value) : `${shown(value)}: ${between(low, high)}`]);
    }
    for (const other of besideNow) {
      const points = pointsOf(other, name), value = points && before(points, Date.parse(current.end));
      if (value === null || value === undefined) continue;
      const apart = found.value === null ? null : found.value - value;
      told.push([other.name, apart === null ? shown(value) : `${shown(value)} (${apart < 0 ? "−" : "+"}${shown(Math.abs(apart))})`]);
    }
    fill(card.querySelector(".sure"), told.flatMap(([term, value]) => [make("dt", "", term), make("dd", "", value)]));
    card.classList.toggle("firing", wrong(name) === 3);
    fill(card.querySelector(".rules"), rulesOf(name).map((alert) => {
      const link = make("a", "", alert.name);
      link.href = `#alert-${alerts.indexOf(alert) + 1}`;
      link.dataset.key = alert.name;
      return make("li", alert.state === "firing" ? "firing" : "", link, `, limit ${shown(alert.limit)}: ${alert.state}`);
    }));
  }
  arrange();
}

// Cards are moved only where their order changes, and not while the focus is in one.
let arranged = "";
function arrange() {
  if (!current || !able) return;
  const names = Object.keys(current.metrics);
  const sorted = (some) => {
    if (view.order === "name") return [...some].sort((one, other) => one.localeCompare(other));
    return view.order ? some : [...some].sort((one, other) => wrong(other) - wrong(one)); // a stable sort
  };
  const grouped = new Set(able.groups.flatMap(({ metrics }) => metrics));
  let groups = [...able.groups.map(({ title, metrics }) => [title, sorted(metrics)]),
    [able.groups.length ? "Other" : "Metrics", sorted(names.filter((name) => !grouped.has(name)))]];
  groups = groups.filter(([, some]) => some.length);
  if (!view.order) groups.sort(([, one], [, other]) => wrong(other[0]) - wrong(one[0]));
  const wanted = JSON.stringify(groups);
  if (wanted !== arranged && !(arranged && document.activeElement.closest?.(".card"))) {
    arranged = wanted;
    at("metrics").replaceChildren(...groups.map(([title, some]) => {
      const box = at("group").content.firstElementChild.cloneNode(true);
      box.querySelector("h2").textContent = title;
      box.querySelector("h2").className = able.groups.length ? "" : "unseen";
      box.querySelector(".grid").append(...some.map(cardOf));
      return box;
    }));
  }
  const wish = view.find.toLowerCase();
  for (const name of names) cardOf(name).hidden = !name.toLowerCase().includes(wish);
  for (const box of document.querySelectorAll(".group")) box.hidden = !box.querySelector(".card:not([hidden])");
  put(at("found"), wish ? `${names.filter((name) => !cardOf(name).hidden).length} of ${names.length} metrics` : "");
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
    const piece = make("span", key);
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
    const term = make("span", "", ...(key ? [make("i", key)] : []), word);
    return make("li", "", term, make("b", "", value));
  }));
}

function period(seconds) {
  if (seconds === null) return "–";
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${(seconds / size).toPrecision(2)} ${unit}`;
  }
  return `${seconds.toPrecision(2)} s`;
}

// --- charts --------------------------------------------------------------------------------------

function showLine() {
  if (!line) return;
  for (const card of cards.values()) {
    card.stale = true;
    if (card.near) drawCard(card);
  }
}

function drawCard(card) {
  card.stale = false;
  const { name } = card, points = line.metrics[name], box = card.querySelector(".chart");
  const some = points?.value.some((value) => value !== null) ?? false;
  box.hidden = !some;
  card.querySelector("details").hidden = !points;
  if (!points) return; // no row has come yet
  drawTable(card);
  if (!some) return;
  const rules = rulesOf(name), last = line.time.at(-1);
  drawLine(box, line.time.map(stamp), points, {
    marks: marks.map(({ time, text }) => ({ time: stamp(time), text })),
    beside: others().flatMap((other) => {
      const found = pointsOf(other, name);
      return found ? [{ ...other, time: found.time.map(stamp), value: found.value }] : [];
    }),
    limits: rules.filter(({ limit }) => limit !== null),
    fired: rules.flatMap(({ history }) => history.flatMap(({ time, state }, n) =>
      (state === "firing" ? [[stamp(time), stamp(history[n + 1]?.time ?? last)]] : []))),
    range: zoom?.map(stamp),
  });
  if (!card.zooms) whenZoomed(box, (range) => zoomTo(range?.map(unstamped) ?? null));
  card.zooms = true;
}

function columnsBeside(name) {
  const found = others().map((other) => [other.name, pointsOf(other, name)]).filter(([, points]) => points);
  return found.map(([title, points]) => [title, line.time.map((text) => before(points, Date.parse(text)))]);
}

function drawTable(card) {
  const points = line?.metrics[card.name];
  if (!card.querySelector("details").open || !points) return;
  const more = columnsBeside(card.name);
  const rows = line.time.map((time, n) => [
    moment(line.start[n]), moment(time), shown(points.value[n]), between(points.sure_low[n], points.sure_high[n]),
    between(points.low[n], points.high[n]), shown(line.n_rows[n]), ...more.map(([, values]) => shown(values[n])),
  ]).reverse();
  const header = [`From (${zone()})`, "Until", "Value", "95 % confidence", "Certainly in", "Rows", ...more.map(([title]) => title)];
  fillTable(card.querySelector("table"), header, rows);
}

function download(name) {
  const parts = [...Object.entries(line.metrics[name]), ...columnsBeside(name)];
  const header = ["start", "time", "n_rows", "coverage", ...parts.map(([part]) => part)];
  const columns = [line.start, line.time, line.n_rows, line.coverage, ...parts.map(([, values]) => values)];
  offer(csv([header, ...line.time.map((_, n) => columns.map((column) => column[n]))]), `${name}.csv`);
}

function zoomTo(range) {
  zoom = range;
  showLine();
}

const MOVES = { // of a length, by where it begins and ends
  in: (from, to) => [(3 * from + to) / 4, (from + 3 * to) / 4],
  out: (from, to) => [(3 * from - to) / 2, (3 * to - from) / 2],
  earlier: (from, to) => [(3 * from - to) / 2, (from + to) / 2],
  later: (from, to) => [(from + to) / 2, (3 * to - from) / 2],
};

function move(how) {
  if (!line?.time.length) return;
  const whole = [line.time[0], line.time.at(-1)].map(Date.parse);
  if (how === "whole") return zoomTo(null);
  let [from, to] = MOVES[how](...(zoom ?? whole));
  const beyond = Math.max(whole[0] - from, 0) || Math.min(whole[1] - to, 0); // it stays inside
  [from, to] = [Math.max(from + beyond, whole[0]), Math.min(to + beyond, whole[1])];
  zoomTo(from === whole[0] && to === whole[1] ? null : [from, to]);
}

// --- alerts, slices, history ---------------------------------------------------------------------

function showHistory() {
  const changes = alerts.flatMap(({ name, history }) => history.map((each) => ({ name, ...each })));
  const rows = [
    ...changes.map(({ time, name, state, silenced }) => [Date.parse(time), name, state, silenced ?? ""]),
    ...marks.map(({ time, text }) => [Date.parse(time), text, "mark", ""]),
  ].sort(([one], [other]) => other - one);
  at("history").hidden = !rows.length;
  fillTable(at("history").querySelector("table"), [`Time (${zone()})`, "Alert or mark", "State", "Silenced"],
    rows.map(([time, ...rest]) => [moment(time), ...rest]));
}

function showAlerts() {
  at("alerts").hidden = !alerts.length;
  // Reasons change each second: what is read out is in which state which alert is.
  put(at("spoken"), alerts.map((alert) => `${alert.state}: ${alert.name}`).join("; "));
  const rows = alerts.map((alert, n) => {
    const rule = make("p", "", alert.name, " ", make("span", "", alert.why));
    const link = (text, href, title) => {
      const made = make("a", "", text);
      made.href = href;
      made.dataset.key = `${text} ${alert.name}`;
      made.setAttribute("aria-label", title);
      rule.append(" ", made);
      return made;
    };
    if (cards.has(alert.metric)) link("Chart", `#${cards.get(alert.metric).id}`, `Chart of ${alert.metric}`);
    if (alert.runbook) link("Runbook", alert.runbook, `Runbook of ${alert.name}`).rel = "noreferrer"; // http or https
    const since = make("span", "", alert.since ? `since ${moment(alert.since)} ${zone()}` : "");
    const row = make("div", `alert ${{ firing: "firing", ok: "ok" }[alert.state] ?? "none"}`, make("b", "", alert.state), rule, since);
    row.id = `alert-${n + 1}`;
    return row;
  });
  const quiet = rows.filter((_, n) => alerts[n].state === "ok"), fine = at("fine");
  fill(at("loud"), rows.filter((row) => !quiet.includes(row)));
  fine.hidden = !quiet.length;
  put(fine.querySelector("summary"), quiet.length === 1 ? "1 rule is ok" : `${quiet.length} rules are ok`);
  fill(fine.querySelector("div"), quiet);
}

function showSlices() {
  const some = tables.filter((part) => part.rows.length);
  at("slices").hidden = !some.length;
  fill(at("slice-tables"), some.map((part) => {
    const title = part.by.join(", "), n = part.by.length;
    const box = at("slice-table").content.firstElementChild.cloneNode(true);
    box.querySelector("h3").textContent = `By ${title}`;
    box.querySelector(".scroll").setAttribute("aria-label", `Slices by ${title}`);
    box.querySelector("button").setAttribute("aria-label", `Download slices by ${title} as CSV`);
    box.querySelector("button").dataset.key = `csv ${title}`;
    const [column, way] = sorts.get(title) ?? [null, 1];
    const rows = [...part.rows];
    if (column !== null) {
      rows.sort(({ [column]: one }, { [column]: other }) => {
        if (one === null || other === null) return (one === null) - (other === null); // the missing last
        return way * (typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other)));
      });
    }
    box.querySelector("button").addEventListener("click", () => offer(csv([part.header, ...rows]), `slices by ${title}.csv`));
    const header = part.header.map((name, place) => {
      const button = make("button", "sort", name);
      button.type = "button";
      button.dataset.key = `sort ${title} ${name}`;
      button.addEventListener("click", () => {
        sorts.set(title, [place, place === column ? -way : 1]);
        showSlices();
      });
      return button;
    });
    const table = box.querySelector("table");
    fillTable(table, header, rows.map((row) => row.map((cell, place) => {
      const text = typeof cell === "number" && place >= n ? shown(cell) : String(cell ?? "–");
      if (place) return text;
      const slice = JSON.stringify(Object.fromEntries(part.by.map((by, key) => [by, row[key] === null ? null : String(row[key])])));
      const button = make("button", "draw", text);
      button.type = "button";
      button.dataset.key = slice;
      button.setAttribute("aria-pressed", drawn.includes(slice));
      button.setAttribute("aria-label", `Line of ${row.slice(0, n).map((key) => key ?? "–").join(", ")}`);
      button.addEventListener("click", () => { toggle(slice); change(); });
      return button;
    })), n);
    if (column !== null) table.tHead.rows[0].cells[column].ariaSort = way > 0 ? "ascending" : "descending";
    return box;
  }));
}

function showInputs(found) {
  at("inputs").hidden = !found.length;
  const part = (count, rows) => {
    if (count === null) return "–";
    return count ? `${shown(count)} (${(100 * count / rows).toPrecision(2)} %)` : "0";
  };
  const distance = ([method, { value, low, chance }]) => {
    const text = `${method} ${shown(value)}, chance ${shown(chance)}`;
    return make(low !== null && low > chance ? "strong" : "span", "distance", text);
  };
  fillTable(at("inputs").querySelector("table"), ["Input", "Rows", "Missing", "Out of range", "Never seen", "Distance"],
    found.map(({ name, rows, nulls, outside, unseen, distances }) => {
      const every = make("div", "", ...Object.entries(distances).map(distance));
      return [name, shown(rows), part(nulls, rows), part(outside, rows), part(unseen, rows), every];
    }));
}

// --- questions and answers -----------------------------------------------------------------------

// Show everything as it is chosen now; the answers are those that there are.
function change() {
  tellView();
  for (const name of Object.keys(view)) if (controls[name].value !== view[name]) controls[name].value = view[name];
  showAlerts();
  showLines();
  showCards();
  showLine();
  showSlices();
  showHistory();
}

function questions() {
  const beside = others().filter(({ path }) => path).map(({ path }) => path);
  for (const path of besides.keys()) {
    if (!beside.includes(path)) {
      besides.delete(path);
      tags.delete(path);
    }
  }
  return [
    [windowed("api/now"), showNow],
    ["api/marks", (found) => { marks = found.marks; showLine(); showHistory(); }],
    ["api/alerts", (found) => { alerts = found.alerts.map(inOrder); showAlerts(); showCards(); showLine(); showHistory(); }],
    [seriesPath(), (found) => { line = found; showLine(); showCards(); }, "api/series" !== seriesPath()],
    [windowed("api/inputs"), ({ inputs }) => showInputs(inputs)],
    [windowed("api/slices"), (found) => { tables = found.slices; showSlices(); }],
    ...able.models.filter((name) => name !== able.model).map((name) => [`../../api/compare?models=${name},${able.model}`,
      (found) => { rivals.set(name, found); showRivals(); }, true]),
    ...beside.map((path) => [path, (found) => { besides.set(path, found); showLine(); showCards(); }, true]),
  ];
}

function showRivals() {
  const lines = [...rivals].flatMap(([name, found]) => found.differences.map((line) => [line.metric, name,
    shown(line.value), shown(line.other), shown(line.difference), between(line.low, line.high), shown(line.p_adjusted), line.verdict, String(found.n_rows)]));
  at("rivals").hidden = !lines.length;
  fillTable(at("rivals").querySelector("table"),
    ["Metric", "Compared with", "Here", "There", "Difference", "95 % confidence", "p", "Verdict", "Rows"], lines, 2);
}

const problems = new Map(); // by path: what is chosen and cannot be had
const asking = new Set();

async function answer(path, show) {
  try {
    const found = await ask(path);
    problems.delete(path);
    if (!found) return;
    if (questions().some(([asked]) => asked === path)) show(found);
    else tags.delete(path); // it is chosen no more
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    problems.set(path, error.message);
  }
}

function tell(on, text) {
  const status = at("status");
  status.className = on ? "on" : "off";
  document.body.classList.toggle("stale", !on);
  put(status, text);
}

async function round() {
  try {
    if (!able) {
      showView(await ask("api/view"));
      change();
    }
    const every = questions();
    for (const path of problems.keys()) if (!every.some(([asked]) => asked === path)) problems.delete(path);
    for (const [path, show, slow] of every) {
      if (!slow) await answer(path, show);
      else if (!asking.has(path)) { // it keeps nothing else waiting
        asking.add(path);
        answer(path, show).catch(() => {}).finally(() => asking.delete(path));
      }
    }
    heard = new Date();
    tell(true, "live");
  } catch (error) {
    const since = heard ? ` since ${heard.toLocaleTimeString("en-GB")}` : "";
    tell(false, error instanceof TypeError || error.name === "TimeoutError" ? `no answer${since}` : error.message);
  }
  at("problem").hidden = !problems.size;
  put(at("problem"), [...new Set(problems.values())].join("; "));
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", at("token").value);
  at("token").value = "";
});
controls[0].form.addEventListener("submit", (event) => event.preventDefault());
controls[0].form.addEventListener("input", ({ target }) => {
  choose(target.name, target.value);
  if (target.name === "window" || target.name === "span") { // answers of before are of another view
    tags.clear();
    zoom = null;
  }
  if (target.name === "order") arranged = "";
  change();
  wake();
});
for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => move(button.dataset.zoom));
at("controls").open = window.matchMedia("(min-width: 60rem)").matches;
// A link leads into a folded list too, and the focus follows it.
document.addEventListener("click", ({ target }) => {
  const link = target.closest?.("a[href^='#']"), goal = link && document.querySelector(link.getAttribute("href"));
  goal?.closest("details")?.setAttribute("open", "");
  if (goal?.matches(".card")) setTimeout(() => goal.focus({ preventScroll: true }));
});
whenSchemeChanges(showLine);

let wake = () => {};
for (;;) {
  if (!document.hidden) await round();
  await new Promise((done) => {
    wake = done;
    setTimeout(done, EVERY);
  });
}
