// What is chosen, which is part of the address; and times as they are to be shown.

export const view = { window: "", span: "", compare: "", times: "", order: "", find: "" };
export const drawn = []; // slices with a line: JSON objects of columns and keys
const MOST = 4; // of them

const address = new URLSearchParams(location.search);
for (const name of Object.keys(view)) view[name] = address.get(name) ?? "";
drawn.push(...address.getAll("slice").slice(0, MOST));

export function choose(name, value) {
  view[name] = value;
  save();
}

export function toggle(slice) {
  if (drawn.includes(slice)) drawn.splice(drawn.indexOf(slice), 1);
  else drawn.push(slice);
  if (drawn.length > MOST) drawn.shift();
  save();
}

function save() {
  const chosen = Object.entries(view).filter(([, value]) => value);
  const query = new URLSearchParams([...chosen, ...drawn.map((slice) => ["slice", slice])]).toString();
  history.replaceState(null, "", `${location.pathname}${query && `?${query}`}${location.hash}`);
}

export const zone = () => (view.times === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone : "UTC");

// A time in milliseconds, or a text with its zone, as the clock on the wall has it.
export function stamp(time) {
  const at = new Date(time);
  const shift = view.times === "local" ? at.getTimezoneOffset() * 60000 : 0;
  return new Date(at - shift).toISOString().slice(0, 19);
}

export const unstamped = (text) => Date.parse(text.replace(" ", "T") + (view.times === "local" ? "" : "Z"));
export const moment = (time) => stamp(time).slice(0, 16).replace("T", " ");
