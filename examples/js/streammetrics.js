// Reads, merges and writes states of streammetrics, from docs/format.md alone. No dependencies.
//
// In Node: const sm = require("./streammetrics.js"). In a page: <script src="streammetrics.js">, which
// defines `streammetrics`. `open` checks a state, `merge` adds states up, `value` reads F1, ROCAUC,
// MSE, MAE, Mean and Quantile, `bytes` gives the file back.
"use strict";

(function (exports) {
  const TYPES = {
    U64: BigUint64Array, I64: BigInt64Array, F64: Float64Array, F32: Float32Array, U32: Uint32Array,
    I32: Int32Array, F16: Uint16Array, U16: Uint16Array, I16: Int16Array, I8: Int8Array, U8: Uint8Array,
    BOOL: Uint8Array,
  };
  const PLACES = Object.keys(TYPES); // arrays lie in this order
  const utf8 = new TextDecoder("utf-8", { fatal: true });

  // ---- container ----

  /** Verify the checksum of a state and return { meta, arrays, opening }. */
  async function open(file) {
    const bytes = new Uint8Array(file);
    const head = bytes.length < 8 ? 0 : Number(new DataView(bytes.buffer).getBigUint64(0, true));
    if (head < 1 || 8 + head > bytes.length) throw new Error("not a state, or cut short");
    const text = utf8.decode(bytes.subarray(8, 8 + head));
    const found = /\\"checksum\\":\\"([0-9a-f]{64})\\"/.exec(text);
    if (!found) throw new Error("not a state of streammetrics");
    const from = 8 + new TextEncoder().encode(text.slice(0, found.index)).length + 15;
    if ((await hash(bytes, from)) !== found[1]) throw new Error("the checksum does not match");
    const { __metadata__: about, ...told } = JSON.parse(text);
    const meta = JSON.parse(about.streammetrics);
    if (meta.feeds) refuseLarge(about.streammetrics);
    if (meta.format !== 1) throw new Error(`format ${meta.format} is newer than this reader`);
    const arrays = new Map();
    let end = 0;
    for (const [name, { dtype, shape, data_offsets: [start, stop] }] of Object.entries(told)) {
      const type = TYPES[dtype];
      const size = shape.reduce((product, n) => product * n, 1) * type.BYTES_PER_ELEMENT;
      if (start !== end || stop !== start + size) throw new Error(`${name} is not where it should be`);
      // A copy, as the array may not be aligned.
      const values = new type(bytes.slice(8 + head + start, 8 + head + stop).buffer);
      arrays.set(name, { dtype, shape, values });
      end = stop;
    }
    if (8 + head + end !== bytes.length) throw new Error("bytes that belong to no array");
    const at = about.streammetrics.lastIndexOf(',"feeds":');
    return { meta, arrays, opening: about.streammetrics.slice(0, at < 0 ? undefined : at) };
  }

  /** Refuse integers that JSON.parse would round; floats have a point or an exponent. */
  function refuseLarge(json) {
    const outsideTexts = json.replace(/"(?:[^"\\]|\\.)*"/g, '""');
    for (const [number] of outsideTexts.matchAll(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/g)) {
      if (/^-?\d+$/.test(number) && !Number.isSafeInteger(Number(number))) {
        throw new Error(`this reader does not read the integer ${number}, which is beyond 2^53; use streammetrics in Python`);
      }
    }
  }

  async function hash(bytes, from) {
    const blank = bytes.slice();
    blank.fill(48, from, from + 64);
    const { subtle } = globalThis.crypto || require("node:crypto").webcrypto; // Node 18 has no global
    const digest = new Uint8Array(await subtle.digest("SHA-256", blank));
    return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /** Return the file of a state. */
  async function bytes({ meta, arrays, opening }) {
    const blank = opening.replace(/"checksum":"[0-9a-f]{64}"/, `"checksum":"${"0".repeat(64)}"`);
    const escaped = (text) => text.replace(/[\u0080-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const header = { __metadata__: { streammetrics: `${blank},"feeds":${escaped(JSON.stringify(meta.feeds))}}` } };
    const names = [...arrays.keys()].sort((a, b) => {
      const rank = PLACES.indexOf(arrays.get(a).dtype) - PLACES.indexOf(arrays.get(b).dtype);
      return rank || (a < b ? -1 : 1);
    });
    const parts = [];
    let end = 0;
    for (const name of names) {
      const { dtype, shape, values } = arrays.get(name);
      header[name] = { dtype, shape, data_offsets: [end, (end += values.byteLength)] };
      parts.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
    const text = new TextEncoder().encode(ordered(header, names));
    const size = Math.ceil(text.length / 8) * 8;
    const file = new Uint8Array(8 + size + end).fill(32);
    new DataView(file.buffer).setBigUint64(0, BigInt(size), true);
    file.set(text, 8);
    let at = 8 + size;
    for (const part of parts) {
      file.set(part, at);
      at += part.length;
    }
    const before = utf8.decode(text).indexOf('\\"checksum\\":\\"');
    const from = 8 + new TextEncoder().encode(utf8.decode(text).slice(0, before)).length + 15;
    file.set(new TextEncoder().encode(await hash(file, from)), from);
    return file;
  }

  /** Write the header; an object alone would move names that look like integers to the front. */
  function ordered(header, names) {
    const entries = ["__metadata__", ...names].map((name) => `${JSON.stringify(name)}:${JSON.stringify(header[name])}`);
    return `{${entries.join(",")}}`;
  }

  // ---- exact numbers ----

  const bits = (value) => (value < 0n ? -value : value).toString(2).length;

  /** Return the float64 nearest to num / den * 2**exponent, ties to even; den is positive. */
  function nearest(num, den = 1n, exponent = 0) {
    if (num === 0n) return 0;
    if (num < 0n) return -nearest(-num, den, exponent);
    let top = bits(num) - bits(den); // 2**top is at or just above the quotient
    if (top >= 0 ? num < den << BigInt(top) : num << BigInt(-top) < den) top -= 1;
    const last = Math.max(top + exponent, -1022) - 52; // exponent of the last bit kept
    const shift = exponent - last;
    if (shift > 0) num <<= BigInt(shift);
    else den <<= BigInt(-shift);
    let whole = num / den;
    const rest = 2n * (num % den);
    if (rest > den || (rest === den && whole & 1n)) whole += 1n;
    return last > 971 ? Infinity : Number(whole) * 2 ** last;
  }

  /** Return a float64 as an exact integer times 2**exponent. */
  function exact(value) {
    const word = word64(value) & ((1n << 63n) - 1n);
    const power = Number(word >> 52n);
    const integer = (word & ((1n << 52n) - 1n)) | (power ? 1n << 52n : 0n);
    return { integer: value < 0 ? -integer : integer, exponent: Math.max(power, 1) - 1075 };
  }

  const view = new DataView(new ArrayBuffer(8));

  function word64(value) {
    view.setFloat64(0, value);
    return view.getBigInt64(0);
  }

  /** Read the exact sums at a prefix: integers, and the exponent of all. Null where there are none. */
  function sums(arrays, prefix) {
    const digits = arrays.get(`${prefix}digits`);
    if (!digits) return null;
    const [rows, width] = digits.shape;
    const integers = [];
    for (let row = 0; row < rows; row++) {
      let integer = 0n;
      for (let i = width - 1; i >= 0; i--) integer = (integer << 32n) + digits.values[row * width + i];
      integers.push(integer);
    }
    return { integers, exponent: Number(arrays.get(`${prefix}exponent`).values[0]) };
  }

  /** Write exact sums in canonical form. */
  function putSums(arrays, prefix, { integers, exponent }) {
    let rows = integers;
    const set = rows.reduce((all, value) => all | value, 0n);
    let width = 0;
    if (set === 0n) exponent = 0;
    else {
      const low = (set & -set).toString(2).length - 1 + exponent; // exponent of the lowest bit
      const unit = Math.floor(low / 32) * 32;
      const shift = BigInt(Math.abs(exponent - unit));
      rows = rows.map((value) => (exponent >= unit ? value << shift : value >> shift));
      exponent = unit;
      const size = (value) => (value < 0n ? ~value : value).toString(2).length * (value !== 0n && value !== -1n);
      width = Math.floor(Math.max(...rows.map(size)) / 32) + 1;
    }
    const values = new BigInt64Array(rows.length * width);
    rows.forEach((value, row) => {
      for (let i = 0; i < width; i++) {
        const digit = value >> BigInt(32 * i);
        values[row * width + i] = i < width - 1 ? BigInt.asUintN(32, digit) : digit;
      }
    });
    arrays.set(`${prefix}digits`, { dtype: "I64", shape: [rows.length, width], values });
    arrays.set(`${prefix}exponent`, { dtype: "I64", shape: [], values: BigInt64Array.of(BigInt(exponent)) });
  }

  function plus(one, other) {
    if (!one || !other) return one || other;
    if (one.integers.length !== other.integers.length) throw new Error("sums of different widths");
    const exponent = Math.min(one.exponent, other.exponent);
    const [a, b] = [one, other].map((sum) => sum.integers.map((value) => value << BigInt(sum.exponent - exponent)));
    return { integers: a.map((value, i) => value + b[i]), exponent };
  }

  const same = (one, other) => plus(one, { integers: other.integers.map((n) => -n), exponent: other.exponent }).integers.every((n) => n === 0n);

  const int64 = (values) => ({ dtype: "I64", shape: [values.length], values: BigInt64Array.from(values) });

  // ---- merging ----

  /** Return the state of the rows of all; they must have the same configuration. */
  function merge(states) {
    for (const { meta } of states) refuseContainers(meta);
    return states.reduce((one, other) => {
      const configured = (state) => state.opening.replace(/"checksum":"[0-9a-f]{64}"/, "");
      if (configured(one) !== configured(other)) throw new Error("the states have different configurations");
      const feeds = one.meta.feeds.map((feed, i) => joined(feed, other.meta.feeds[i]));
      const arrays = new Map();
      for (let k = 0; part(one.arrays, k).size || part(other.arrays, k).size; k++) {
        const mine = { arrays: part(one.arrays, k), meta: one.meta };
        const theirs = { arrays: part(other.arrays, k), meta: other.meta };
        for (const [name, array] of added(mine, theirs)) arrays.set(`${k}/${name}`, array);
      }
      return { meta: { ...one.meta, feeds }, arrays, opening: one.opening };
    });
  }

  /** Refuse states that are not of one metric. */
  function refuseContainers({ class: name, parameters }) {
    if (!parameters) throw new Error(`this reader reads and merges single metrics, not a ${name}; use streammetrics in Python`);
  }

  function joined([facts, rows, omitted], [more, moreRows, moreOmitted]) {
    const all = { ...facts };
    for (const [name, value] of Object.entries(more)) {
      const known = name in all ? all[name] : value;
      const numbers = [known, value].sort().join() === "booleans,integers";
      if (known !== value && !numbers) throw new Error(`${name}: ${value} there and ${known} here`);
      all[name] = known === value ? value : "integers";
    }
    const sorted = Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
    return [sorted, rows + moreRows, omitted + moreOmitted];
  }

  /** Return the arrays of a part, without its name. */
  function part(arrays, name) {
    const found = new Map();
    for (const [key, array] of arrays) if (key.startsWith(`${name}/`)) found.set(key.slice(`${name}/`.length), array);
    return found;
  }

  /** Add one statistic, which its arrays tell. */
  function added(one, other) {
    const has = (name) => one.arrays.has(name) || other.arrays.has(name);
    if (has("pairs") && has("row_labels")) return addedTables(one.arrays, other.arrays);
    if (has("form") || (has("width") && !has("weight/digits"))) return addedHistograms(one, other);
    if (["digits", "total/digits", "weight/digits"].some(has)) return addedSums(one.arrays, other.arrays);
    throw new Error(`this reader does not merge ${one.meta.class}`);
  }

  const AMOUNTS = ["", "hits/", "total/"]; // sums that may have squares

  /** Add exact sums by name; a width is that of either. */
  function addedSums(one, other) {
    const arrays = new Map();
    const squares = AMOUNTS.map((prefix) => `${prefix}squares/`);
    for (const name of new Set([...one.keys(), ...other.keys()])) {
      const prefix = name.replace(/(digits|exponent)$/, "");
      if (name.endsWith("digits")) {
        if (!squares.includes(prefix)) putSums(arrays, prefix, plus(sums(one, prefix), sums(other, prefix)));
      } else if (!name.endsWith("exponent")) {
        const [mine, theirs] = [one.get(name).values[0], other.get(name).values[0]];
        if (mine && theirs && mine !== theirs) throw new Error(`${theirs} outputs cannot join ${mine}`);
        arrays.set(name, int64([mine || theirs]));
      }
    }
    AMOUNTS.forEach((prefix, i) => {
      const both = [one, other].map((each) => sums(each, squares[i]));
      if (both.some(Boolean)) putSquares(arrays, prefix, plus(both[0] || sums(one, prefix), both[1] || sums(other, prefix)));
    });
    return arrays;
  }

  function putSquares(arrays, prefix, squares) {
    const amount = sums(arrays, prefix);
    if (amount.exponent >= 0 && same(amount, squares)) return;
    putSums(arrays, `${prefix}squares/`, squares);
  }

  function labels(array) {
    return array.dtype === "U8" ? JSON.parse(decoded(array.values)) : Array.from(array.values);
  }

  function putLabels(values) {
    if (typeof values[0] !== "string") return int64(values);
    const packed = encoded(`[${values.map(quoted).join(",")}]`);
    return { dtype: "U8", shape: [packed.length], values: packed };
  }

  /** Decode UTF-8 in which lone surrogates have three bytes, as TextDecoder refuses to. */
  function decoded(bytes) {
    let text = "";
    let start = 0;
    for (let i = 0; i + 2 < bytes.length; i++) {
      if (bytes[i] === 0xed && bytes[i + 1] >= 0xa0) {
        text += utf8.decode(bytes.subarray(start, i));
        text += String.fromCharCode(0xd000 | ((bytes[i + 1] & 0x3f) << 6) | (bytes[i + 2] & 0x3f));
        start = i + 3;
      }
    }
    return text + utf8.decode(bytes.subarray(start));
  }

  /** Encode text as UTF-8, lone surrogates in three bytes. */
  function encoded(text) {
    return Uint8Array.from(Array.from(text).flatMap((c) => {
      const code = c.codePointAt(0);
      if (code < 0xd800 || code > 0xdfff) return Array.from(new TextEncoder().encode(c));
      return [0xed, 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)];
    }));
  }

  /** Write a JSON text as it is; JSON.stringify would escape lone surrogates. */
  const quoted = (text) => Array.from(text, (c) => (/^[\ud800-\udfff]$/.test(c) ? c : JSON.stringify(c).slice(1, -1))).join("").replace(/^|$/g, '"');

  const byCodePoint = (a, b) => {
    if (typeof a !== "string") return a < b ? -1 : a > b ? 1 : 0;
    const [x, y] = [a, b].map((text) => Array.from(text, (c) => c.codePointAt(0)));
    for (let i = 0; i < Math.min(x.length, y.length); i++) if (x[i] !== y[i]) return x[i] - y[i];
    return x.length - y.length;
  };

  /** Return the entries of a contingency table: labels of both sides, amount and square. */
  function table(arrays) {
    const [rows, columns] = ["row_labels", "column_labels"].map((name) => labels(arrays.get(name)));
    const amount = sums(arrays, "amount/");
    const squares = sums(arrays, "amount/squares/");
    const entries = Array.from(arrays.get("pairs").values, (pair, i) => {
      const at = Number(pair);
      return {
        row: rows[Math.floor(at / columns.length)],
        column: columns[at % columns.length],
        amount: { integers: [amount.integers[i]], exponent: amount.exponent },
        square: squares ? { integers: [squares.integers[i]], exponent: squares.exponent } : { integers: [amount.integers[i]], exponent: amount.exponent },
      };
    });
    return { entries, squared: Boolean(squares) };
  }

  function addedTables(one, other) {
    const both = [table(one), table(other)];
    const cells = new Map();
    for (const { entries } of both) {
      for (const entry of entries) {
        const key = JSON.stringify([String(entry.row), String(entry.column)]);
        const known = cells.get(key);
        cells.set(key, known ? { ...known, amount: plus(known.amount, entry.amount), square: plus(known.square, entry.square) } : entry);
      }
    }
    const sorted = [...cells.values()].sort((a, b) => byCodePoint(a.row, b.row) || byCodePoint(a.column, b.column));
    const side = (name) => sorted.map((cell) => cell[name]).sort(byCodePoint).filter((label, i, all) => !i || label !== all[i - 1]);
    const [rows, columns] = [side("row"), side("column")];
    const arrays = new Map([
      ["row_labels", putLabels(rows)],
      ["column_labels", putLabels(columns)],
      ["pairs", int64(sorted.map((cell) => BigInt(rows.indexOf(cell.row) * columns.length + columns.indexOf(cell.column))))],
    ]);
    putSums(arrays, "amount/", together(sorted.map((cell) => cell.amount)));
    if (both.some(({ squared }) => squared)) putSquares(arrays, "amount/", together(sorted.map((cell) => cell.square)));
    return arrays;
  }

  /** Return exact sums one after the other, at one exponent. */
  function together(every) {
    const exponent = Math.min(0, ...every.map((each) => each.exponent));
    return { integers: every.flatMap((each) => each.integers.map((n) => n << BigInt(each.exponent - exponent))), exponent };
  }

  // ---- histograms ----

  const HALF = word64(0.5);
  const ONE = word64(1);
  const CLOSEST = word64(2 ** -54);
  const clip = (value, low, high) => (value < low ? low : value > high ? high : value);

  /** Return the id of the cell of a score at a level from 1 on. */
  function cellOf(score, level) {
    const word = word64(score);
    const signed = word < 0n ? -(1n << 63n) - word : word;
    let key = signed; // W of docs/format.md
    if (score > 1) key = signed + 52n * (1n << 52n);
    else if (score > 0.5) key = 2n * HALF - clip(word64(1 - score), CLOSEST, HALF);
    return (key >> 1n) >> BigInt(level - 1);
  }

  /** Read the histograms at a prefix, `count` of them. */
  function histograms(arrays, prefix, count) {
    return Array.from({ length: count }, (_, k) => {
      const get = (name) => arrays.get(`${prefix}${k}/${name}`);
      const level = Number(get("level").values[0]);
      const scores = Array.from(get("scores").values);
      const whole = get("counts");
      const mass = whole
        ? { integers: Array.from(whole.values), exponent: 0 }
        : sums(arrays, `${prefix}${k}/mass.`);
      const classes = scores.length ? mass.integers.length / scores.length : whole ? whole.shape[1] : 0;
      const tails = get("tails");
      const cells = scores.map((score, i) => ({
        score,
        tail: tails && !level ? tails.values[i] : 0,
        id: level ? get("cells").values[i] : null,
        mass: { integers: mass.integers.slice(i * classes, (i + 1) * classes), exponent: mass.exponent },
      }));
      return { level, cells, classes, tailed: Boolean(tails), counted: Boolean(whole) };
    });
  }

  function mergedHistogram(one, other, most) {
    const tailed = one.tailed || other.tailed;
    for (let level = Math.max(one.level, other.level); ; level++) {
      const cells = new Map();
      for (const each of [one, other]) {
        for (const cell of each.cells) {
          let id = null;
          if (level) id = each.level ? cell.id >> BigInt(level - each.level) : cellOf(cell.score, level);
          const tail = level ? 0 : cell.tail;
          const key = level ? id : `${cell.score} ${tail}`;
          const known = cells.get(key);
          if (known) {
            known.mass = plus(known.mass, cell.mass);
            if (known.score !== cell.score) known.score = NaN;
          } else cells.set(key, { score: cell.score, tail, id, mass: cell.mass });
        }
      }
      if (cells.size > most) continue;
      const sorted = [...cells.values()].sort((a, b) => (level ? (a.id < b.id ? -1 : 1) : a.score - b.score || a.tail - b.tail));
      return { level, cells: sorted, classes: one.classes || other.classes, tailed };
    }
  }

  function putHistogram(arrays, prefix, { level, cells, classes, tailed }) {
    arrays.set(`${prefix}level`, int64([BigInt(level)]));
    arrays.set(`${prefix}cells`, int64(level ? cells.map((cell) => cell.id) : []));
    const floats = (values) => ({ dtype: "F64", shape: [values.length], values: Float64Array.from(values) });
    arrays.set(`${prefix}scores`, floats(cells.map((cell) => cell.score)));
    if (tailed) arrays.set(`${prefix}tails`, floats(level ? [] : cells.map((cell) => cell.tail)));
    const mass = together(cells.map((cell) => cell.mass));
    const unit = 1n << BigInt(-mass.exponent);
    const total = mass.integers.reduce((sum, n) => sum + n, 0n);
    if (mass.integers.every((n) => n % unit === 0n) && total / unit < 1n << 53n) {
      const values = BigInt64Array.from(mass.integers, (n) => n / unit);
      arrays.set(`${prefix}counts`, { dtype: "I64", shape: [cells.length, classes], values });
    } else putSums(arrays, `${prefix}mass.`, mass);
  }

  function addedHistograms(one, other) {
    const head = one.arrays.has("form") ? "form" : "width";
    const heads = [one, other].map((each) => each.arrays.get(head).values);
    const counts = heads.map((values) => Number(values[0]));
    if (counts[0] && counts[1] && counts[0] !== counts[1]) throw new Error("states of different widths");
    if (!counts[0] || !counts[1]) return counts[0] ? one.arrays : other.arrays;
    const arrays = new Map();
    const last = head === "form" ? [heads[0][1] & heads[1][1]] : [];
    arrays.set(head, int64([heads[0][0], ...last]));
    const most = one.meta.parameters.max_bins;
    const [mine, theirs] = [one, other].map((each) => histograms(each.arrays, "", counts[0]));
    const whole = mine.map((each, k) => mergedHistogram(each, theirs[k], most));
    whole.forEach((each, k) => putHistogram(arrays, `${k}/`, each));
    const sides = [one, other].map((each, i) => squared(each, [mine, theirs][i], counts[0]));
    const held = sides.some((side) => side.held);
    if (sides.some((side) => !side.known) || (held && whole.some((each) => each.tailed))) {
      arrays.set("squares/unknown", { dtype: "BOOL", shape: [1], values: Uint8Array.of(1) });
    } else if (held) {
      arrays.set("squares/width", int64([heads[0][0]]));
      sides[0].of.forEach((each, k) => {
        putHistogram(arrays, `squares/${k}/`, mergedHistogram(each, sides[1].of[k], Math.min(most, 4096)));
      });
    }
    return arrays;
  }

  /** Return the histograms of squared weights, which of rows of weight 1 are those of weights. */
  function squared(state, columns, count) {
    if (state.arrays.has("squares/width")) return { held: true, known: true, of: histograms(state.arrays, "squares/", count) };
    return { held: false, known: !state.arrays.has("squares/unknown"), of: columns };
  }

  // ---- values ----

  /** Return the value of a metric, with the parameters that docs/format.md gives formulas for. */
  function value({ meta, arrays }) {
    refuseContainers(meta);
    const read = READERS[meta.class];
    if (!read) throw new Error(`this reader has no formula of ${meta.class}`);
    return read(part(arrays, 0), meta.parameters);
  }

  const quotient = (above, below, i = 0) => {
    const weight = below && below.integers[0];
    if (!above || !weight) return NaN;
    return nearest(above.integers[i], weight, above.exponent - below.exponent);
  };

  function meanLoss(arrays, { multioutput }) {
    const [loss, weight] = [sums(arrays, "loss/"), sums(arrays, "weight/")];
    const means = loss ? loss.integers.map((_, i) => quotient(loss, weight, i)) : [NaN];
    if (multioutput === "raw_values") return means;
    if (means.length > 1) throw new Error("this reader averages no outputs");
    return means[0];
  }

  /** Return a value, or `zero_division` in place of an undefined one. */
  const defined = (value, otherwise) => (Number.isNaN(value) && otherwise !== null ? otherwise : value);

  function f1(arrays, { average, pos_label: positive, threshold, labels: given, multilabel, zero_division: otherwise }) {
    if (multilabel) throw new Error("this reader has no F1 of several labels a row (multilabel=true)");
    if (given !== null) throw new Error("this reader has no F1 of given labels (labels)");
    const ratio = (tp, either) => quotient({ integers: [2n * tp.integers[0]], exponent: tp.exponent }, either);
    const none = { integers: [0n], exponent: 0 };
    if (threshold !== null) {
      if (average !== "binary") throw new Error(`this reader has no average=${average} at a threshold`);
      const all = sums(arrays, "");
      const [, fp, fn, tp] = all.integers;
      return defined(ratio({ integers: [tp], exponent: all.exponent }, { integers: [2n * tp + fp + fn], exponent: all.exponent }), otherwise);
    }
    const { entries } = table(arrays);
    const every = [...new Set(entries.flatMap(({ row, column }) => [row, column]))].sort(byCodePoint);
    const one = (label) => {
      const pick = (test) => entries.filter(test).reduce((sum, entry) => plus(sum, entry.amount), none);
      const [predicted, actual] = [pick(({ column }) => column === label), pick(({ row }) => row === label)];
      return ratio(pick(({ row, column }) => row === label && column === label), plus(predicted, actual));
    };
    if (average === "binary") return defined(one(positive === null ? 1n : typeof positive === "string" ? positive : BigInt(positive)), otherwise);
    if (average !== "macro") throw new Error(`this reader has no average=${average}`);
    return every.reduce((sum, label) => sum + defined(one(label), otherwise), 0) / every.length;
  }

  function rocAuc(arrays, { max_fpr: most, min_tpr: least, zero_division: otherwise }) {
    const count = Number(arrays.get("form").values[0]);
    if (most !== null || least !== null || count > 1) throw new Error("this reader has whole areas of two classes only");
    if (!count) return defined(NaN, otherwise);
    const [histogram] = histograms(arrays, "", count);
    let [below, positives, area] = [0n, 0n, 0n]; // twice the area
    for (const { mass: { integers: [negative, positive] } } of histogram.cells) {
      area += positive * (2n * below + negative);
      below += negative;
      positives += positive;
    }
    return defined(below && positives ? nearest(area, 2n * below * positives) : NaN, otherwise);
  }

  function quantile(arrays, { q, method }) {
    if (method !== "linear" || Array.isArray(q)) throw new Error("this reader has one linear quantile");
    if (!Number(arrays.get("width").values[0])) return NaN;
    const [{ cells, level }] = histograms(arrays, "", 1);
    if (level) throw new Error("this reader has quantiles up to max_bins distinct values only");
    const mass = together(cells.map((cell) => cell.mass));
    const unit = 1n << BigInt(-mass.exponent); // masses are integers / unit
    const total = mass.integers.reduce((sum, n) => sum + n, 0n);
    if (total < unit) return NaN;
    const [above, below] = decimal(q);
    // h = q (n - 1) = rank / scale
    const [rank, scale] = [above * (total - unit), below * unit];
    const first = rank / scale;
    const at = (target) => {
      let passed = 0n;
      return cells[mass.integers.findIndex((n) => (passed += n) >= target)].score;
    };
    const [low, high] = [(first + 1n) * unit, (first + 2n) * unit].map((target) => at(target < total ? target : total));
    const share = rank - first * scale; // of scale
    if (low === high || !share) return low;
    const [a, b] = [exact(low), exact(high)];
    const exponent = Math.min(a.exponent, b.exponent);
    const [x, y] = [a, b].map((each) => each.integer << BigInt(each.exponent - exponent));
    return nearest(x * (scale - share) + y * share, scale, exponent);
  }

  /** Return a number as the fraction of the decimal that it prints as. */
  function decimal(number) {
    const [digits, power = "0"] = String(number).split("e");
    const [whole, rest = ""] = digits.split(".");
    const exponent = Number(power) - rest.length;
    const integer = BigInt(whole + rest);
    return exponent < 0 ? [integer, 10n ** BigInt(-exponent)] : [integer * 10n ** BigInt(exponent), 1n];
  }

  const READERS = {
    MSE: meanLoss,
    MAE: meanLoss,
    Mean: (arrays) => quotient(sums(arrays, "x/"), sums(arrays, "weight/")),
    F1: f1,
    ROCAUC: rocAuc,
    Quantile: quantile,
  };

  Object.assign(exports, { open, merge, bytes, value, nearest });
})(typeof module === "undefined" ? (globalThis.streammetrics = {}) : module.exports);
