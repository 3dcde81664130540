"""Alerts: functions of the events, their states over time, and each rule by its definition."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event

import numpy as np
import pytest
import scipy.spatial
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from live.events import START, joined, live, observe

import streammetrics as sm
from streammetrics.core.feeding.plan import Plan
from streammetrics.live.alerts.rule import Moment, alert_of
from streammetrics.live.events import SECOND
from streammetrics.live.samples import chance_of_bins

REFERENCE = sm.Quantile(q=0.5).update(np.linspace(0, 1, 64))
RULES = [
    sm.Below("accuracy", 0.6, window="2min", min_rows=2),
    sm.Above("brier", 0.4, window="1min", for_="2min", clear=0.3),
    sm.Change("accuracy", 0.5, false_alarms="200 a day"),
    sm.BurnRate("accuracy", 0.9, windows=("3min", "1min"), factor=2),
    sm.Drift(REFERENCE, "y_score", window="2min", min_rows=3, level=0.6),
    sm.Coverage(0.5, window="1min", after="1min"),
    sm.Silence("2min"),
]
TIERS = (("1min", "12min"), ("5min", "40min"))
ordered = st.lists(
    st.tuples(st.integers(0, 700), st.integers(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])),
    max_size=16,
)


def told(state):
    return [(alert.state, alert.since, alert.why, alert.changes) for alert in state.alerts(RULES)]


@settings(deadline=None, max_examples=8)
@given(ordered, st.randoms(use_true_random=False))
def test_any_order_merge_and_restart_gives_the_alerts_of_one_history(events, random):
    whole = live(tiers=TIERS)
    for event in sorted(events):
        observe(whole, event)
    states = [live(tiers=TIERS) for _ in range(3)]
    for event in random.sample(events, len(events)):
        place = random.randrange(3)
        observe(states[place], event)
        if random.random() < 0.1:
            states[place].alerts(RULES)
        if random.random() < 0.1:
            states[place] = sm.from_bytes(states[place].to_bytes())
    assert told(states[0].merge(*states[1:])) == told(whole)


def test_a_first_row_that_is_late_is_judged_although_its_pane_was_read_without_rows():
    late, whole = live(tiers=TIERS), live(tiers=TIERS)
    observe(late, (180, 0, 0.0))
    late.alerts(RULES)
    observe(late, (60, 0, 0.0))
    for event in ((60, 0, 0.0), (180, 0, 0.0)):
        observe(whole, event)
    assert told(late) == told(whole)


@pytest.mark.long
@settings(deadline=None, max_examples=6)
@given(ordered, st.randoms(use_true_random=False))
def test_what_live_running_told_is_what_a_replay_tells(events, random):
    rules = [rule for rule in RULES if not isinstance(rule, sm.Silence)]
    running, before = live(tiers=(("1min", "20min"),)), [[] for _ in rules]
    late = sorted(events, key=lambda event: event[0] + 59 * random.random())  # within a pane
    for event in late:
        observe(running, event)
        if random.random() < 0.5 and event is not late[-1]:
            continue
        for known, alert in zip(before, running.alerts(rules), strict=True):
            known += [change for change in alert.changes if change not in known]
    replayed = live(tiers=(("1min", "20min"),))
    for event in events:
        observe(replayed, event)
    assert before == [list(alert.changes) for alert in replayed.alerts(rules)]


def test_slices_change_no_alert():
    rng = np.random.default_rng(0)
    plain, sliced = live(tiers=TIERS), live(tiers=TIERS, by=[["side"]])
    for second in np.sort(rng.integers(0, 700, 120)).tolist():
        row = {"y_true": int(rng.integers(2)), "y_score": float(rng.random())}
        plain.observe(time=START + second, **row)
        sliced.observe(time=START + second, **row, side="left" if second % 3 else "right")
    assert told(sliced) == told(plain)
    assert {alert.state for alert in plain.alerts(RULES)} >= {"firing", "ok"}


def test_a_label_or_row_that_comes_changes_what_was_told():
    state = joined(label_ttl="1min", label_lateness="1min", tiers=TIERS)
    for second in range(0, 600, 5):
        state.predict(id=second, time=START + second, y_score=0.75)
    rules = [sm.Below("accuracy", 0.5, window="1min"), sm.Coverage(0.5, window="1min")]
    assert [alert.state for alert in state.alerts(rules)] == ["no data", "firing"]
    for second in range(480, 600, 5):  # which are not over yet
        state.label(id=second, time=START + second, y_true=1)
    state.predict(id="newest", time=START + 710, y_score=0.5)
    assert [alert.state for alert in state.alerts(rules)] == ["ok", "ok"]
    assert state.alerts(rules)[1].rows == 12


def moments(verdicts):
    every = {"b": "bad", "g": "good", "?": "between", "-": "no data"}
    return [Moment(60 * SECOND * place, every[v]) for place, v in enumerate(verdicts)]


@pytest.mark.parametrize(
    ("verdicts", "minutes", "states"),
    [
        ("gbbg", 0, ["ok", "firing", "ok"]),
        ("gbbbbg", 2, ["ok", "firing", "ok"]),
        ("gbbgbbg", 2, ["ok"]),
        ("gb??g", 0, ["ok", "firing", "ok"]),
        ("g??b?b?", 2, ["ok"]),
        ("b-b", 0, ["firing", "no data", "firing"]),
        ("-b-", 5, ["ok", "no data"]),
        ("", 0, []),
    ],
)
def test_states_follow_from_verdicts(verdicts, minutes, states):
    rule = RULES[0]
    alert = alert_of(rule, moments(verdicts), minutes * 60 * SECOND)
    assert [state for _, state in alert.changes] == states
    assert alert.state == (states or ["no data"])[-1]
    if alert.changes:
        assert alert.since == alert.changes[-1][0]


def test_a_firing_alert_says_which_window_made_it_fire():
    state = live(tiers=TIERS)
    for second in range(600):
        observe(state, (second, 1, 0.0 if 240 <= second < 400 else 1.0))
    (alert,) = state.alerts([sm.Below("accuracy", 0.5, window="1min", for_="1min")])
    assert [change for _, change in alert.changes] == ["ok", "firing", "ok"]
    times = [(time.timestamp() - START) / 60 for time, _ in alert.changes]
    assert times[1:] == [6, 8]  # bad from the minute that ends at 5 on, good again at 8
    assert (alert.value, alert.rows, alert.rule.window) == (1.0, 60, "1min")
    assert state.now(START + 3000).alerts([alert.rule])[0].state == "no data"


def test_bounds_have_to_be_beyond_the_threshold_and_not_the_value():
    state = sm.Live(sm.MetricSet({"auc": sm.ROCAUC(max_bins=2)}), tiers=TIERS)
    rng = np.random.default_rng(0)
    label, score = rng.integers(0, 2, 600), rng.random(600)
    state.observe(time=START + np.arange(600), y_true=label, y_score=score)
    (alert,) = state.alerts([sm.Below("auc", 0.7, window="1min")])
    assert alert.value < 0.7 < alert.high
    assert alert.state == "ok"


def test_budgets_burn_by_both_windows():
    state = live(tiers=TIERS)
    for second in range(660):
        observe(state, (second, 1, 0.0 if 240 <= second < 420 else 1.0))
    rule = sm.BurnRate("accuracy", objective=0.9, windows=("5min", "1min"), factor=5)
    (alert,) = state.alerts([rule])
    times = [(time.timestamp() - START) / 60 for time, _ in alert.changes]
    assert [to for _, to in alert.changes] == ["ok", "firing", "ok"]
    assert times[1:] == [7, 8]  # 3 of 5 minutes wrong: 6 times the budget; then it is over
    assert sm.BurnRate("accuracy", 0.99).factor is None
    with pytest.raises(
        ValueError, match=r"BurnRate\(factor=None\): expected a rate, for a window this long"
    ):
        sm.BurnRate("accuracy", 0.99, windows=("2h", "5min"))
    with pytest.raises(ValueError, match="the long window first"):
        sm.BurnRate("accuracy", 0.99, windows=("5min", "1h"))
    with pytest.raises(ValueError, match="auc is not the share of"):
        sm.Live(sm.MetricSet({"auc": sm.Mean()})).alerts([sm.BurnRate("auc", 0.9)])


def test_evidence_of_a_change_is_the_sum_over_all_beginnings():
    rule = sm.Change("accuracy", 0.3, false_alarms="1 a year", direction="both", tolerance=0.02)
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 30, 12).astype(float)
    trials = np.stack([np.floor(rows * 0.5), rows], axis=1)
    *_, last = rule.follow(
        list(range(12)), [{"": (s, n)} for s, n in trials], 1e12, (1, -1)
    ).moments
    expected = []
    for way, shift in itertools.product((1, -1), (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)):
        p = 0.3 + way * 0.02
        q = 1 / (1 + (1 - p) / p * math.exp(-way * shift))
        logs = [s * math.log(q / p) + (n - s) * math.log((1 - q) / (1 - p)) for s, n in trials]
        expected.append(sum(math.exp(sum(logs[start:])) for start in range(12)))
    assert f"evidence {np.mean(expected):.3g} of" in last.told


def test_without_a_change_evidence_grows_by_one_a_pane_on_average():
    rule = sm.Change("accuracy", 0.3)
    for panes in (1, 4, 9):
        mean = 0.0
        for outcome in itertools.product((0, 1), repeat=panes):
            trials = [{"": (float(s), 1.0)} for s in outcome]
            *_, last = rule.follow(list(range(panes)), trials, 1e12, (1,)).moments
            evidence = float(last.told.split("evidence ")[1].split(" of")[0])
            mean += evidence * 0.3 ** sum(outcome) * 0.7 ** (panes - sum(outcome))
        assert mean == pytest.approx(panes, rel=0.005)  # of what is told in three digits


def test_a_change_is_sought_in_every_row_once_through_all_tiers():
    state = sm.Live(sm.MetricSet({"accuracy": sm.Accuracy()}), tiers=TIERS)
    wrong = 0
    for second in range(1, 1900, 7):
        wrong += second % 3 > 0
        state.observe(time=START + second, y_true=1, y_pred=int(second % 3 == 0))
    rule = sm.Change("accuracy", 0.99, after="1min")
    (alert,) = state.alerts([rule])
    until = START + 60 * ((1900 - 60 - 5) // 60)
    rows = len([s for s in range(1, 1900, 7) if START + s < until])
    assert alert.state == "firing"
    assert alert.until.timestamp() == until
    assert alert.rows == rows
    assert rule.limit(60 * SECOND) == 365 * 24 * 60


def test_drift_is_the_distance_from_the_reference_and_has_a_noise_floor():
    rng = np.random.default_rng(3)
    reference, current = rng.random(3000), rng.random(600) ** 1.5
    held = sm.MetricSet(
        {"auc": sm.ROCAUC(), "median": sm.Quantile(q=0.5)}, columns={"values": "y_score"}
    )
    held.update(y_true=rng.integers(0, 2, 3000), y_score=reference)
    state = sm.Live(sm.MetricSet({"auc": sm.ROCAUC(max_bins=4096)}), tiers=TIERS)
    times = START + np.arange(600) * 1.1
    state.observe(time=times, y_true=rng.integers(0, 2, 600), y_score=current)
    inside = current[times < START + 540]  # which is over
    options = {"window": "10min", "min_rows": 100}
    ks, area, psi, js = state.alerts(
        [
            sm.Drift(held, "y_score", method="ks", **options),
            sm.Drift(held.to_bytes(), "y_score", method="wasserstein", threshold=0.01, **options),
            sm.Drift(held["auc"].copy(), "y_score", method="psi", **options),
            sm.Drift(held, "y_score", method="js", **options),
        ]
    )
    assert ks.value == pytest.approx(scipy.stats.ks_2samp(reference, inside).statistic)
    assert area.value == pytest.approx(scipy.stats.wasserstein_distance(reference, inside))
    assert {alert.rows for alert in (ks, area, psi, js)} == {len(inside)}
    assert [alert.state for alert in (ks, area, js)] == ["firing"] * 3
    assert psi.value < psi.rule.threshold


@pytest.mark.long
@pytest.mark.parametrize("method", ["ks", "wasserstein", "psi", "js"])
def test_chance_alone_seldom_passes_the_noise_floor(method):
    rng = np.random.default_rng(4)
    reference = sm.Quantile(q=0.5).update(rng.normal(size=2000))
    rule = sm.Drift(reference, "values", method=method, threshold=0.0, level=0.99, min_rows=1)
    passed = 0
    for _ in range(400):
        sample = sm.Quantile(q=0.5).update(rng.normal(size=300))
        reference = sm.Quantile(q=0.5).update(rng.normal(size=2000))
        rule = sm.Drift(reference, "values", method=method, threshold=0.0, level=0.99, min_rows=1)
        passed += rule.judge(0, (sample,)).verdict == "bad"
    assert passed <= 12  # of 4 to be expected; 13 have a probability of 0.0003


@pytest.mark.parametrize(
    "shares",
    [
        pytest.param(np.full(50, 0.02), id="equal"),
        pytest.param(1 / np.arange(1, 21), id="Zipf"),
        pytest.param(np.array([0.98, 0.01, 0.01]), id="rare"),
        pytest.param(np.array([0.8, 0.15, 0.04, *[0.001] * 10]), id="many rare"),
    ],
)
@pytest.mark.parametrize("rows", [(100, 20_000), (200, 2000), (1200, 1200), (20_000, 2000)])
def test_bounds_of_bins_hold_for_few_rows_in_a_bin(shares, rows):
    rng, n = np.random.default_rng(7), 20_000
    shares = shares / shares.sum()
    counts = [rng.multinomial(size, shares, n) for size in rows]
    added = [(some + 0.5) / (some + 0.5).sum(axis=1, keepdims=True) for some in counts]
    psi = scipy.special.kl_div(*added).sum(axis=1) + scipy.special.kl_div(*added[::-1]).sum(axis=1)
    js = scipy.spatial.distance.jensenshannon(*counts, axis=1)
    parts = 1 / rows[0] + 1 / rows[1]
    for method, distances in (("psi", psi), ("js", js)):
        bound = chance_of_bins(method, shares, parts, 0.999)
        assert (distances > bound).sum() <= 36  # of 20; more have a probability of 0.0004
        assert (distances > bound / 2).sum() > 20


def test_one_bin_has_no_distance():
    assert chance_of_bins("psi", np.ones(1), 0.01, 0.999) == 0


def test_a_drift_of_few_rows_is_below_the_noise_floor():
    rng = np.random.default_rng(5)
    reference = sm.Quantile(q=0.5).update(rng.normal(size=5000))
    sample = sm.Quantile(q=0.5).update(rng.normal(size=20))
    rule = sm.Drift(reference, "values", method="psi", min_rows=10)
    moment = rule.judge(0, (sample,))
    assert moment.value > rule.threshold  # as rules of thumb have it, a shift
    assert moment.verdict == "good"


def test_silence_is_known_by_the_time_of_reading():
    state = live()
    rule = sm.Silence(timedelta(minutes=10), name="quiet")
    assert state.alerts([rule])[0].state == "no data"
    observe(state, (0, 1, 0.5))
    assert state.now(START + 600).alerts([rule])[0].state == "ok"
    assert (
        state.now(START + 1).alerts([rule])[0].why
        == "the newest event is 1 second old, the limit is 10min"
    )
    assert (
        state.now(START - 30).alerts([rule])[0].why
        == "the newest event lies 30 seconds in the future, the limit is 10min"
    )
    alert = state.now(START + 700).alerts([rule])[0]
    assert (alert.name, alert.state, alert.value) == ("quiet", "firing", 700.0)
    assert alert.since.timestamp() == START + 600


def test_alerts_are_a_table():
    state = live(tiers=TIERS)
    for second in range(0, 600, 5):
        observe(state, (second, 1, 0.25))
    alerts = state.alerts([sm.Below("accuracy", 0.5, window="1min"), sm.Silence("1h")])
    assert [alert.name for alert in alerts.firing] == ["accuracy below 0.5 over 1min"]
    assert alerts.to_frame().loc["no events for 1h", "state"] == "ok"
    assert alerts.to_dict()["no events for 1h"]["since"].endswith("+00:00")
    lines = repr(alerts).splitlines()
    assert lines[0].split() == ["alert", "state", "since", "why"]
    assert "accuracy 0 of 12 rows" in lines[1]
    assert "<table>" in alerts._repr_html_()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sm.Below("auc", 1e400), r"Below\(threshold=inf\): expected a finite number"),
        (lambda: sm.Below("auc", "high"), r"Below\(threshold='high'\): expected a number"),
        (lambda: sm.Below("auc", 0.8, window="1"), "window='1' is not a duration"),
        (lambda: sm.Below("auc", 0.8, for_="soon"), "for_='soon' is not a duration"),
        (lambda: sm.Below("auc", 0.8, clear=0.7), r"clear=0.7\): expected no less"),
        (lambda: sm.Above("auc", 0.8, clear=0.9), r"clear=0.9\): expected no more"),
        (lambda: sm.Below("auc", 0.8, min_rows=0), r"min_rows=0\): expected 1 or more"),
        (lambda: sm.Change("auc", 1.0), "neither 0 nor 1"),
        (lambda: sm.Change("auc", 0.5, false_alarms="seldom"), 'as "1 a year"'),
        (lambda: sm.Change("auc", 0.5, direction="left"), "expected 'worse' or 'up' or"),
        (lambda: sm.Drift(REFERENCE, "values", method="wasserstein"), "unit of the values"),
        (lambda: sm.Drift(sm.MetricSet({"mean": sm.Mean()}), "score"), "no histogram of 'score'"),
        (lambda: sm.Drift(sm.Quantile(q=0.5), "values"), "has seen no rows of 'values'"),
        (lambda: sm.Coverage(1.5), "from 0 to 1"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (sm.Below("acuracy", 0.5), "no metric 'acuracy'.*accuracy"),
        (sm.Below("accuracy", 0.5, window="90s"), "not a whole number of panes"),
        (sm.Below("accuracy", 0.5, window="1h"), "longer than they are kept"),
        (sm.Below("accuracy", 0.5, window="5min", for_="1h"), "once 61min are over"),
        (sm.Change("auc", 0.5), "ROCAUC is not a share of rows"),
        (sm.Drift(REFERENCE, "values"), "no histogram of 'values'"),
    ],
)
def test_what_a_stream_does_not_have_is_named(rule, message):
    state = live(tiers=TIERS)
    observe(state, (0, 1, 0.5))
    with pytest.raises(ValueError, match=message):
        state.alerts([rule])


def test_what_is_no_rule_is_refused():
    state = sm.Live(sm.Accuracy())
    with pytest.raises(TypeError, match="rules in a list"):
        state.alerts(sm.Below("value", 0.5))
    with pytest.raises(TypeError, match="'value' is not a rule, such as"):
        state.alerts(["value"])


def test_what_is_judged_is_the_time_of_which_there_are_rows(monkeypatch):
    def whole(times):
        state = sm.Live(sm.Accuracy(), tiers=[("1min", "30d"), ("1h", "60d")])
        return state.observe(time=times, y_true=[1] * len(times), y_pred=[0] * len(times))

    judged, judge = [], sm.Below.judge

    def counted(rule, end, windows):
        judged.append(end)
        return judge(rule, end, windows)

    monkeypatch.setattr(sm.Below, "judge", counted)
    rules = [sm.Below("value", 0.5, window="5min", for_="2min"), sm.Change("value", 0.9)]
    times = [*range(START, START + 600, 60), START + 86_400]
    alerts = whole(times).alerts(rules)
    assert len(judged) < 40  # and not the 43,200 minutes that are kept
    changes = [(time.timestamp() - START // 60 * 60, to) for time, to in alerts[0].changes]
    assert changes == [(60, "ok"), (180, "firing"), (900, "no data")]
    earlier = whole([START - 86_400 * 20, *times]).alerts(rules)
    assert earlier[0].changes[-3:] == alerts[0].changes
    for found in (alerts, earlier):  # minutes are judged, and not hours
        assert START < found[1].since.timestamp() < START + 600


@pytest.mark.long
def test_an_alert_outlives_the_minutes_in_which_it_fired():
    tiers = [("1min", "3h"), ("1h", "15d")]
    running = sm.Live(sm.MetricSet({"share": sm.Accuracy()}), tiers=tiers)
    whole = running.copy()
    rules = [sm.Below("share", 0.55, window="1h", min_rows=20, clear=0.8)]
    rules += [sm.BurnRate("share", 0.5, windows=("2h", "1h"), factor=1.1)]
    start = START // 86_400 * 86_400
    for minute in range(900):  # 0.8 is not reached again until minute 800
        right = 1 if 60 <= minute < 150 else 4 if 150 <= minute < 800 else 6
        rows = {"y_true": [1] * 6, "y_pred": [int(place < right) for place in range(6)]}
        for one in (running, whole):
            one.observe(time=start + minute * 60 + np.arange(0, 60, 10), **rows)
        if minute % 3 < 2:  # it is not read every minute
            continue
        below, _ = running.alerts(rules)
        if 100 < minute < 820:
            assert below.firing
            assert below.since.timestamp() <= start + 120 * 60  # no later than the hour's end
    assert not below.firing
    assert [alert.to_dict() for alert in whole.alerts(rules)] == [
        alert.to_dict() for alert in running.alerts(rules)
    ]
    (burnt,) = (alert for alert in whole.alerts(rules) if isinstance(alert.rule, sm.BurnRate))
    assert [to for _, to in burnt.changes] == ["ok", "firing", "ok"]


def test_windows_that_share_panes_share_merges_and_one_pane_changes_few_windows(monkeypatch):
    state = sm.Live(sm.MetricSet({"loss": sm.BrierScore(), "auc": sm.ROCAUC()}))
    scores = np.random.default_rng(4).random(1200)
    times = START // 60 * 60 + np.arange(0, 10_800, 9)
    state.observe(time=times, y_true=np.arange(1200) % 2, y_score=scores)
    merged, judged = [], []
    merge, compare = Plan.merged, sm.Below.compare

    def counted(plan, first, others):
        merged.append(1 + len(others))
        return merge(plan, first, others)

    def kept(rule, end, reading):
        judged.append((end, reading.value, reading.rows))
        return compare(rule, end, reading)

    monkeypatch.setattr(Plan, "merged", counted)
    monkeypatch.setattr(sm.Below, "compare", kept)
    rules = [sm.Below("loss", 0.2, window="1h")]
    state.alerts(rules)
    assert len(judged) == 1 + 119  # an hour before the first window of minutes
    assert sum(merged) < 119 * 12  # and not 60 panes each
    windows = [state.window("1h", end=end / 1e9) for end, _, _ in judged]
    assert [(w.compute()["loss"], w.n_rows) for w in windows] == [told[1:] for told in judged]
    judged.clear()
    late = state.observe(time=int(times[0]) + 3600, y_true=1, y_score=0.5).alerts(rules)
    assert len(judged) == 60
    assert late == state.copy().alerts(rules)


def test_silence_tells_since_when_events_come_and_when_they_did_not():
    state = sm.Live(sm.Mean(), tiers=(("1min", "3h"), ("1h", "2d")), max_ahead=None)
    rules = [sm.Silence("10min")]
    for minute in (*range(5, 30), *range(60, 90)):
        state.observe(time=minute * 60 + 7, values=1.0)
        (alert,) = state.alerts(rules)
        assert (alert.state, alert.until.minute) == ("ok", minute % 60)
        assert alert.since.minute == (5 if minute < 60 else 0)
    times = [(time.hour * 60 + time.minute, to) for time, to in alert.changes]
    assert times == [(5, "ok"), (40, "firing"), (60, "ok")]
    (alert,) = state.now(99 * 60 + 7).alerts(rules)
    assert (alert.state, alert.since.hour, alert.since.minute) == ("ok", 1, 0)
    (alert,) = state.now(101 * 60).alerts(rules)
    assert (alert.state, alert.since.minute, alert.since.second) == ("firing", 39, 7)
    assert sm.from_bytes(state.to_bytes()).now(101 * 60).alerts(rules) == (alert,)
    state.observe(time=30 * 3600, values=1.0)  # the minutes are kept no longer
    (alert,) = state.now(None).alerts(rules)
    assert [to for _, to in alert.changes] == ["ok", "firing", "ok"]


def test_predictions_that_wait_are_events_to_silence():
    state = sm.Live(sm.MetricSet({"loss": sm.BrierScore()}), max_ahead=None)
    for minute in (0, 1, 2, 50):
        state.predict(id=minute, time=minute * 60, y_score=0.5)
    (alert,) = state.alerts([sm.Silence("30min")])
    assert [(time.minute, to) for time, to in alert.changes] == [
        (0, "ok"),
        (33, "firing"),
        (50, "ok"),
    ]


def test_events_come_in_and_others_read_while_rules_judge(monkeypatch):
    state = sm.Live(sm.MetricSet({"loss": sm.BrierScore()}), tiers=(("1min", "3h"),))
    state.observe(time=range(0, 3600, 10), y_true=[1] * 360, y_score=[0.5] * 360)
    rule, judging, go_on = sm.Below("loss", 0.5, window="5min"), Event(), Event()
    expected = state.copy().alerts([rule])
    compare = sm.Below.compare

    def slow(*args):
        judging.set()
        assert go_on.wait(60)
        return compare(*args)

    monkeypatch.setattr(sm.Below, "compare", slow)
    with ThreadPoolExecutor(2) as pool:
        alerts = pool.submit(state.alerts, [rule])
        assert judging.wait(60)
        other = pool.submit(lambda: state.observe(time=3600, y_true=1, y_score=0.5).window("1h"))
        try:
            assert other.result(60).n_rows == 355  # of the panes up to the newest
            assert not alerts.done()
        finally:
            go_on.set()
        assert told_of(alerts.result(60)) == told_of(expected)


def told_of(alerts):
    return [(alert.state, alert.since, alert.until, alert.why) for alert in alerts]
