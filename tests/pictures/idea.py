"""The idea in one picture: rows in any order, on any shards, merged in any way, are one state.

What it shows is computed: the rows are dealt out at random, and the fingerprints beneath the
states are those of their bytes.
"""

from __future__ import annotations

import hashlib
import random

import streammetrics as sm

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
STYLE = """
  text { font: 15px system-ui, sans-serif; fill: #1c2126; }
  .small { font-size: 12.5px; fill: #5b6570; }
  .mono { font: 13px ui-monospace, monospace; }
  .line { stroke: #8a949e; stroke-width: 1.4; fill: none; }
  .box { fill: #f3f5f7; stroke: #8a949e; } .page { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6eaee; } .small { fill: #a3aeb9; }
    .box { fill: #1e242a; } .page { fill: #14181c; }
  }
"""
ROWS = 24
SHARDS = 4


def idea():
    """Return the picture as SVG."""
    rng = random.Random(5)
    rows = [(rng.random() < 0.5, round(rng.random(), 2)) for _ in range(ROWS)]
    ways = [_way(rows, seed) for seed in (1, 2)]
    whole = _fed(rows)
    marks = [way[-1] for way in ways]
    assert marks == [_mark(whole)] * 2  # the promise that the picture is of
    parts = [
        _defs(),
        _text(20, 34, "The same rows ..."),
        _text(230, 34, "... in any order, on any shards"),
    ]
    parts += [_text(520, 34, "... merged in any way"), _text(742, 34, "... are one state")]
    for place, (shards, order, middle, mark) in enumerate(ways):
        parts += _drawn(60 + 190 * place, rows, shards, order, middle, mark)
    value = f"{whole.compute():.4f}"
    parts.append(_text(742, 425, f"AUC {value}, exact, either way", "small"))
    parts.append(_text(20, 425, f"{ROWS} rows, a dot each, coloured by shard", "small"))
    body = "\n".join(parts)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 445" role="img" '
        'aria-labelledby="idea"><title id="idea">Rows in any order, on any shards, merged in any '
        f"way, give one state: the same bytes</title>\n{body}\n</svg>\n"
    )


def _defs():
    return f'<style>{STYLE}</style><rect class="page" width="960" height="445" rx="6"/>'


def _fed(rows):
    return sm.ROCAUC().update([int(y) for y, _ in rows], [score for _, score in rows])


def _mark(state):
    return hashlib.sha256(state.to_bytes()).hexdigest()[:8]


def _way(rows, seed):
    """Deal the rows out to shards in an order of their own, and merge as a tree or as a chain."""
    rng = random.Random(seed)
    order = list(range(ROWS))
    rng.shuffle(order)
    shards = [rng.randrange(SHARDS) for _ in order]
    states = [
        _fed([rows[at] for at, s in zip(order, shards, strict=True) if s == k])
        for k in range(SHARDS)
    ]
    if seed % 2:
        middle = [((0, 1), sm.merge(states[:2])), ((2, 3), sm.merge(states[2:]))]
        last = sm.merge([state for _, state in middle])
    else:
        middle = [((0, 1, 2, 3), sm.merge(states[::-1]))]
        last = middle[0][1]
    return shards, order, middle, _mark(last)


def _drawn(top, rows, shards, order, middle, mark):
    parts = []
    for at in range(ROWS):
        colour = COLOURS[shards[order.index(at)]]
        parts.append(_dot(28 + 24 * (at % 6), top + 30 + 24 * (at // 6), colour, rows[at][0]))
    parts.append(_arrow(178, top + 66, 222, top + 66))
    heights = [top + 6 + 40 * k for k in range(SHARDS)]
    counts = [0] * SHARDS
    parts += [
        f'<rect class="box" x="230" y="{y}" width="210" height="32" rx="4"/>' for y in heights
    ]
    for at, shard in zip(order, shards, strict=True):
        parts.append(
            _dot(244 + 20 * counts[shard], heights[shard] + 16, COLOURS[shard], rows[at][0])
        )
        counts[shard] += 1
    for of, _ in middle:
        y = sum(heights[k] for k in of) / len(of)
        parts.extend(_arrow(442, heights[k] + 16, 566, y + 16) for k in of)
        parts.append(f'<circle class="box" cx="584" cy="{y + 16}" r="16"/>')
        parts.append(_text(579, y + 21, "+"))
        parts.append(_arrow(602, y + 16, 732, top + 82))
    parts.append(f'<rect class="box" x="742" y="{top + 56}" width="196" height="52" rx="6"/>')
    parts.append(_text(756, top + 78, "to_bytes()", "mono"))
    parts.append(_text(756, top + 97, f"sha256 {mark}…", "mono"))
    return parts


def _dot(x, y, colour, positive):
    fill = colour if positive else "none"
    return f'<circle cx="{x}" cy="{y}" r="7" fill="{fill}" stroke="{colour}" stroke-width="2.4"/>'


def _arrow(x1, y1, x2, y2):
    return (
        f'<path class="line" d="M{x1} {y1} C{(x1 + x2) / 2} {y1} {(x1 + x2) / 2} {y2} {x2} {y2}"/>'
    )


def _text(x, y, words, kind=""):
    return f'<text x="{x}" y="{y}" class="{kind}">{words}</text>'
