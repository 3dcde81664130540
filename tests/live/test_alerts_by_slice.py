"""Rules by slice: which slice is told, the corrections for their number, and false alarms."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from live.events import START

import streammetrics as sm
from streammetrics.inference.distributions import clopper_pearson
from streammetrics.live.events import SECOND
from streammetrics.live.service.config import rule_of

TIERS = [("5min", "2d")]
SLICES = 12


def stream(right, *, by="who", order=None, suite=None):
    """Return a state with rows that are right or wrong: of each pane, slice and row."""
    panes, slices, _ = right.shape
    time = START // 300 * 300 + 300 * np.arange(panes)[:, None, None] + np.zeros_like(right, int)
    who = np.broadcast_to(np.array([f"s{n:02d}" for n in range(slices)])[:, None], right.shape)
    state = sm.Live(
        sm.MetricSet({"accuracy": sm.Accuracy()} if suite is None else suite),
        tiers=TIERS,
        by=by,
        max_ahead=None,
    )
    order = np.arange(right.size) if order is None else order
    y_pred = right.ravel().astype(int)[order]
    ones = np.ones(len(order), int)
    return state.observe(
        time=time.ravel()[order], y_true=ones, y_pred=y_pred, who=who.ravel()[order]
    )


def test_the_worst_slice_is_told_with_limits_for_all_of_them():
    right = np.ones((6, 4, 100), bool)
    right[:, 2, :30] = False
    right[:, 1, :14] = False
    right[:, 3, 1:] = False  # with fewer rows than the rule asks for
    rows = np.ones(right.shape, bool)
    rows[:, 3, 1:] = False
    state = stream(right, order=np.flatnonzero(rows))
    rule = sm.Below("accuracy", 0.85, window="10min", min_rows=50, by="who", level=0.99)
    (alert,) = state.alerts([rule])
    low, high = clopper_pearson(140, 200, 0.01 / 3 / 2)
    assert (alert.state, alert.value, alert.rows) == ("firing", 0.7, 200)
    assert (alert.low, alert.high) == (low, high)
    told = f"accuracy 0.7 of 200 rows in who=s02, in [{low:.4g}, {high:.4g}] at 0.99 for all slices"
    assert alert.why.endswith(f"; now {told}; below 0.85: 1 of 3 slices")
    assert alert.name == "accuracy below 0.85 over 10min by who"
    (alert,) = state.alerts([sm.Below("accuracy", 0.6, window="10min", min_rows=50, by="who")])
    assert alert.state == "ok"
    (alert,) = state.alerts([sm.Below("accuracy", 0.6, window="10min", min_rows=500, by="who")])
    assert (alert.state, alert.why) == ("no data", "no slice has 500 rows and a value")


def test_a_slice_that_chance_may_have_made_bad_does_not_fire_and_does_not_clear():
    right = np.ones((4, 2, 50), bool)
    right[:, 1, :10] = False  # 0.80 of 50 rows in five minutes
    state = stream(right)
    rule = sm.Below("accuracy", 0.85, window="5min", by="who")
    assert state.alerts([rule])[0].state == "ok"
    assert rule.judge(0, (state.window("5min", by="who"),)).verdict == "good"
    wary = sm.Below("accuracy", 0.70, clear=0.99, window="5min", by="who")
    assert wary.judge(0, (state.window("5min", by="who"),)).verdict == "between"


def test_above_and_metrics_that_are_no_share_of_rows():
    rng = np.random.default_rng(1)
    state = sm.Live(sm.MetricSet({"mse": sm.MSE()}), tiers=TIERS, by="who", max_ahead=None)
    n = 4000
    who = np.where(np.arange(n) % 4 == 0, "bad", "good")
    state.observe(
        time=START + np.arange(n) // 2,
        y_true=np.zeros(n),
        y_pred=rng.normal(0, np.where(who == "bad", 2.0, 1.0)),
        who=who,
    )
    (alert,) = state.alerts([sm.Above("mse", 2.0, window="15min", by=["who"])])
    window = state.window("15min", end=alert.until, by="who")
    limits = window[{"who": "bad"}]["mse"].confidence(1 - 0.001 / 2)
    assert alert.state == "firing"
    assert (alert.low, alert.high) == pytest.approx((limits.low, limits.high))
    assert "who=bad" in alert.why
    assert "above 2: 1 of 2 slices" in alert.why


def test_a_change_of_a_slice_needs_as_many_times_the_evidence_as_there_are_slices():
    rule = sm.Change("accuracy", 0.9, false_alarms="1 a day", by="who")
    rng = np.random.default_rng(3)
    table = np.stack([rng.binomial(20, 0.8, 40), np.full(40, 20)], axis=1).astype(float)
    ends = [300 * SECOND * n for n in range(1, 41)]
    pairs = [tuple(row) for row in table.tolist()]
    quiet = {f"q{n}": (20.0, 20.0) for n in range(9)}
    many = [{"moved": pair} | (quiet if place >= 5 else {}) for place, pair in enumerate(pairs)]
    found = rule.follow(ends, many, 288.0, (-1,))
    assert found.seen.tolist() == [1] * 5 + [10] * 35
    first = next(moment for moment in found.moments if moment.verdict == "bad")
    assert first.told.startswith("in moved, accuracy ")
    assert first.told.endswith("of 2,880; changed: 1 of 10 slices")
    alone = rule.follow(ends, [{"moved": pair} for pair in pairs], 288.0, (-1,))
    assert first.end > next(moment.end for moment in alone.moments if moment.verdict == "bad")


def defined(trials, limit, baseline):
    """Return the verdict of each pane and the slice with most evidence, by the definition."""
    shifts = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    moved = [1 / (1 + (1 - baseline) / baseline * math.exp(shift)) for shift in shifts]
    sums, verdicts, found = {}, {}, []
    for pane in trials:
        sums |= {title: [0.0] * 7 for title in pane if title not in sums}
        most = limit * max(len(sums), 1)
        for title, (s, n) in pane.items():
            if not n:
                continue
            ratios = [
                math.exp(s * math.log(p / baseline) + (n - s) * math.log((1 - p) / (1 - baseline)))
                for p in moved
            ]
            new = [(m + 1) * ratio for m, ratio in zip(sums[title], ratios, strict=True)]
            if math.fsum(new) / 7 > most:
                new = [min(m, most * 7) for m in new]
                new = [m * most * 7 / math.fsum(new) for m in new]
            sums[title], mean = new, math.fsum(new) / 7
            reached = mean >= most * (1 - 1e-12)
            verdicts[title] = "bad" if reached else "good" if mean <= math.sqrt(most) else "between"
        worst = [v for v in ("bad", "between", "good") if v in verdicts.values()]
        largest = max(map(math.fsum, sums.values()), default=0.0)
        titles = {t for t, one in sums.items() if math.fsum(one) > largest * (1 - 1e-9)}
        found.append(
            (worst[0] if worst else "no data", titles, list(verdicts.values()).count("bad"))
        )
    return found


@pytest.mark.parametrize("seed", range(30))
def test_evidence_of_slices_follows_its_definition_and_resumes_anywhere(seed):
    rng = np.random.default_rng(seed)
    names, panes = [f"s{n}" for n in range(rng.integers(1, 6))], 60
    rule = sm.Change("accuracy", 0.9, by="who")
    trials = []
    for pane in range(panes):
        rate = 0.9 if pane < 30 else rng.choice([0.5, 0.8, 0.97])
        rows = {name: int(rng.integers(0, 40)) for name in names if rng.random() < 0.6}
        trials.append({name: (float(rng.binomial(n, rate)), float(n)) for name, n in rows.items()})
    ends, limit = [*range(1, panes + 1)], float(rng.choice([5, 50, 5000]))
    whole = rule.follow(ends, trials, limit, (-1,))
    assert len(whole.moments) == panes
    for moment, (verdict, titles, bad) in zip(
        whole.moments, defined(trials, limit, 0.9), strict=True
    ):
        assert moment.verdict == verdict
        assert moment.told.partition(",")[0].removeprefix("in ") in titles or not moment.told
        assert f"changed: {bad} of" in moment.told or not moment.told
    before = [dict(pane) for pane in trials[: rng.integers(1, panes)]]
    for pane in rng.integers(0, len(before), rng.integers(0, 3)):  # which receive rows later
        before[pane] = {}
    if seed % 3 == 0:  # a slice that is no longer there
        before[-1] = {"gone": (9.0, 10.0), **before[-1]}
    known = rule.follow(ends[: len(before)], before, limit, (-1,))
    again = rule.follow(ends, trials, limit, (-1,), known)
    assert repr(again.moments) == repr(whole.moments)
    assert again.sums.tolist() == whole.sums.tolist()


def test_alerts_by_slice_are_those_of_any_order():
    rng = np.random.default_rng(4)
    right = rng.random((24, 5, 20)) < np.where(np.arange(5) == 3, 0.6, 0.9)[:, None]
    rules = [
        sm.Below("accuracy", 0.8, by="who", window="30min"),
        sm.Change("accuracy", 0.9, by="who", false_alarms="1 a day"),
    ]
    whole = stream(right)
    alerts = whole.alerts(rules)
    assert [alert.state for alert in alerts] == ["firing", "firing"]
    assert all("who=s03" in alert.why for alert in alerts)
    mixed = stream(right, order=rng.permutation(right.size))
    assert mixed.alerts(rules) == alerts
    head, tail = np.split(np.arange(right.size), [right.size // 3])
    running = stream(right, order=head)
    running.alerts(rules)
    pred, panes = right.ravel().astype(int)[tail], tail // 100
    who = np.array([f"s{n:02d}" for n in tail // 20 % 5])
    running.observe(
        time=START // 300 * 300 + 300 * panes, y_true=np.ones(len(tail), int), y_pred=pred, who=who
    )
    assert running.alerts(rules) == alerts


@pytest.mark.long
def test_false_alarms_of_limits_stay_below_half_of_what_level_leaves():
    panes, level = 400, 0.90
    right = np.random.default_rng(5).random((panes, SLICES, 40)) < 0.9
    state = stream(right)
    fired = {}
    for name, of in (("together", level), ("apart", 1 - (1 - level) * SLICES / 2.4)):
        rule = sm.Below("accuracy", 0.9, window="5min", by="who", level=of)
        (alert,) = state.alerts([rule])
        fired[name] = sum(state == "firing" for _, state in alert.changes)
    assert fired["together"] <= panes * (1 - level) / 2
    assert fired["apart"] > 2 * fired["together"] > 0


@pytest.mark.long
def test_false_alarms_of_changes_are_at_most_as_many_as_are_allowed():
    runs, panes = 150, 48  # of five minutes, so that "1 a day" is 1 in 288
    rng = np.random.default_rng(6)
    ends = [300 * SECOND * pane for pane in range(1, panes + 1)]
    fired = {"1 a day": 0, f"{SLICES} a day": 0}  # corrected, and of each slice for itself
    for _ in range(runs):
        counts = rng.binomial(15, 0.9, (panes, SLICES)).tolist()
        trials = [{str(n): (float(s), 15.0) for n, s in enumerate(row)} for row in counts]
        for often in fired:
            rule = sm.Change("accuracy", 0.9, by="who", false_alarms=often)
            found = rule.follow(ends, trials, rule.limit(300 * SECOND), (-1,))
            fired[often] += any(moment.verdict == "bad" for moment in found.moments)
    assert fired["1 a day"] <= runs * panes / 288
    assert fired[f"{SLICES} a day"] > runs * panes / 288


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (sm.Below("accuracy", 0.8, by="country"), "no slices by"),
        (sm.Change("accuracy", 0.8, by=["who", "country"]), "no slices by"),
        (sm.Above("worst", 0.8, by="who"), "worst cannot be judged by slice: MaxError has no conf"),
        (sm.Change("worst", 0.8, by="who"), "MaxError is not a share of rows"),
    ],
)
def test_what_cannot_be_judged_by_slice_is_refused(rule, message):
    suite = {"accuracy": sm.Accuracy(), "worst": sm.MaxError()}
    state = sm.Live(sm.MetricSet(suite), by="who", labels=[0, 1])
    with pytest.raises(ValueError, match=message):
        state.alerts([rule])


def test_a_stream_without_slices_is_told_how_to_have_some():
    state = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy()}))
    with pytest.raises(ValueError, match="nothing is sliced here"):
        state.alerts([sm.Below("accuracy", 0.8, by="who")])


@pytest.mark.parametrize("level", [0.2, 1.0])
def test_levels_are_checked(level):
    with pytest.raises(ValueError, match="a share from 0.5 to below 1"):
        sm.Below("accuracy", 0.8, by="who", level=level)


def test_a_configuration_names_columns_as_text_or_list():
    found = rule_of('Below("accuracy", 0.8, by=["a", "b"])', "low", ".")
    assert found == sm.Below("accuracy", 0.8, by=("a", "b"), name="low")
    assert json.dumps(repr(found)).count("by=") == 1
