// Checks the reader with the vectors of tests/vectors: node --test examples/js/test.js
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const test = require("node:test");
const sm = require("./streammetrics.js");

const folder = path.join(__dirname, "..", "..", "tests", "vectors");
const { vectors, merges } = JSON.parse(fs.readFileSync(path.join(folder, "vectors.json")));
const read = (name) => fs.readFileSync(path.join(folder, `${name}.state`));

// Values may be arrays, and NaN is the text "nan"; weights that are not whole leave ROC AUC 1e-15.
function agree(value, expected, tolerance = 0) {
  if (Array.isArray(expected)) expected.forEach((each, i) => agree(value[i], each, tolerance));
  else if (expected === "nan") assert.ok(Number.isNaN(value));
  else assert.ok(Math.abs(value - expected) <= tolerance * Math.abs(expected), `${value} is not ${expected}`);
}

for (const name of Object.keys(vectors)) {
  test(`opens ${name}`, async () => {
    const state = await sm.open(read(name));
    if (state.meta.feeds) assert.deepEqual(Buffer.from(await sm.bytes(state)), read(name));
  });
  test(`refuses ${name} with another byte`, async () => {
    const blob = Uint8Array.from(read(name));
    blob[blob.length - 1] ^= 1;
    await assert.rejects(sm.open(blob));
  });
}

for (const [whole, parts] of Object.entries(merges)) {
  test(`merges ${whole} to the same bytes, in any order`, async () => {
    const states = await Promise.all(parts.map(async (name) => sm.open(read(name))));
    for (const order of [states, [...states].reverse()]) {
      assert.deepEqual(Buffer.from(await sm.bytes(sm.merge(order))), read(whole));
    }
  });
}

for (const name of Object.keys(merges).flatMap((whole) => [whole, ...merges[whole]])) {
  if (name.startsWith("quantile-past")) continue; // a middle of cells, which this reader does not give
  test(`gives the value of ${name}`, async () => {
    const tolerance = name.startsWith("roc-auc-weighted") ? 1e-15 : 0;
    agree(sm.value(await sm.open(read(name))), vectors[name].value, tolerance);
  });
}

test("refuses what does not belong together, and what was cut short", async () => {
  const [one, other] = [await sm.open(read("mse")), await sm.open(read("mean"))];
  assert.throws(() => sm.merge([one, other]), /different configurations/);
  await assert.rejects(sm.open(read("mse").subarray(0, 100)), /cut short/);
  const labels = [await sm.open(read("f1-1")), await sm.open(read("f1-binary"))];
  labels[1].opening = labels[0].opening;
  assert.throws(() => sm.merge(labels), /labels: integers there and strings here/);
});

test("gives zero_division for what is undefined", async () => {
  const f1 = await sm.open(read("f1"));
  const none = { ...f1, arrays: new Map(f1.arrays) };
  const set = (state, name, value) => ({ ...state, meta: { ...state.meta, parameters: { ...state.meta.parameters, [name]: value } } });
  const binary = set(set(none, "average", "binary"), "pos_label", "absent");
  assert.ok(Number.isNaN(sm.value(binary)));
  assert.equal(sm.value(set(binary, "zero_division", 1)), 1);
  const empty = await sm.open(read("roc-auc"));
  empty.arrays.get("0/0/counts").values.forEach((_, i, all) => { if (i % 2) all[i] = 0n; });
  assert.ok(Number.isNaN(sm.value(empty)));
  assert.equal(sm.value(set(empty, "zero_division", 0.5)), 0.5);
  assert.throws(() => sm.value(set(f1, "labels", ["a", "b"])), /no F1 of given labels/);
  assert.throws(() => sm.value(set(f1, "multilabel", true)), /several labels a row/);
});

test("refuses integers that it would round, by name", async () => {
  const state = await sm.open(read("roc-auc"));
  const large = { ...state, opening: state.opening.replace('"pos_label":null', '"pos_label":1152921504606846977') };
  assert.notEqual(large.opening, state.opening);
  await assert.rejects(sm.bytes(large).then(sm.open), /the integer 1152921504606846977, which is beyond 2\^53/);
  const quoted = { ...state, opening: state.opening.replace('"pos_label":null', '"pos_label":"\\"1152921504606846977"') };
  await sm.open(await sm.bytes(quoted));
});

test("reads and writes labels with lone surrogates", async () => {
  const state = await sm.open(read("f1-1"));
  const bytes = [0x5b, 0x22, 0x61, 0x22, 0x2c, 0x22, 0xed, 0xb2, 0x80, 0x22, 0x5d]; // ["a","\udc80"]
  for (const side of ["row_labels", "column_labels"]) {
    state.arrays.set(`0/${side}`, { dtype: "U8", shape: [bytes.length], values: Uint8Array.from(bytes) });
  }
  const before = sm.value(await sm.open(read("f1-1")));
  const again = await sm.open(await sm.bytes(state));
  assert.equal(sm.value(again), before);
  assert.deepEqual(Array.from(sm.merge([again, again]).arrays.get("0/row_labels").values), bytes);
});

for (const name of ["MetricSet", "Slices", "UnitSet", "Comparison", "Estimated", "Ledger", "Live"]) {
  test(`refuses a ${name} with a sentence`, async () => {
    const state = await sm.open(read(name));
    const sentence = new RegExp(`reads and merges single metrics, not a ${name}; use streammetrics`);
    assert.throws(() => sm.value(state), sentence);
    assert.throws(() => sm.merge([state, state]), sentence);
  });
}

test("rounds to the nearest float64, ties to even", () => {
  assert.equal(sm.nearest(1n, 3n), 1 / 3);
  assert.equal(sm.nearest((1n << 53n) + 1n), 2 ** 53);
  assert.equal(sm.nearest((1n << 53n) + 3n), 2 ** 53 + 4);
  assert.equal(sm.nearest(1n, 1n, -1074), 5e-324);
  assert.equal(sm.nearest(1n, 1n, -1075), 0);
  assert.equal(sm.nearest(3n, 1n, -1075), 1e-323);
  assert.equal(sm.nearest(-1n, 1n, 1024), -Infinity);
});
