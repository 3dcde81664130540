"""Bradley-Terry: the maximum and where there is none, limits, ranks, and rows that are refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracles.arena import decided, fitted, matches, numbered, simulated, weighted_matches
from scipy.optimize import linprog

import streammetrics as sm

Z = 1.959963984540054
NONE = "ignore::streammetrics.UndefinedMetricWarning"


@pytest.mark.parametrize("rows", [matches, numbered, weighted_matches, decided])
@pytest.mark.parametrize("n", [60, 3000])
def test_strengths_and_ties_are_those_of_a_fit_in_50_digits(rows, n):
    drawn = rows(np.random.default_rng(n), n)
    metric = sm.BradleyTerry().update(**drawn)
    players, strengths, nu = fitted(**drawn)
    assert list(metric.compute().to_dict()) == players
    np.testing.assert_allclose(metric.compute(), np.array(strengths, float), rtol=0, atol=1e-9)
    assert metric.nu == pytest.approx(float(nu), rel=1e-9)


def test_players_far_apart_are_fitted_as_well():
    strengths = np.linspace(-6, 6, 13)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 12, 4000)
    half = (strengths[first] - strengths[first + 1]) / 2
    chance = np.exp(np.stack([half, -half, np.full(4000, -1.0)], axis=1))
    won = (rng.random((4000, 1)) > np.cumsum(chance / chance.sum(axis=1, keepdims=True), 1)).sum(1)
    winner = np.select([won == 0, won == 1], [first, first + 1], np.nan)
    rows = {"a": first, "b": first + 1, "winner": winner}
    found = sm.BradleyTerry().update(**rows)
    np.testing.assert_allclose(found.compute(), np.array(fitted(**rows)[1], float), atol=1e-9)
    assert found.ranks()[12] == (1, 1)


def has_maximum(size, wins, ties):
    """Whether only a common shift leaves every outcome as likely as the others of its pair."""
    constraints = []
    for (i, j), tied in [*((pair, False) for pair in wins), *((pair, True) for pair in ties)]:
        rows = {}
        for name, (one, two, tie) in {"i": (1, 0, 0), "j": (0, 1, 0), "t": (0.5, 0.5, 1)}.items():
            rows[name] = np.zeros(size + 1)
            rows[name][i], rows[name][j], rows[name][-1] = one, two, tie
        if not ties:
            del rows["t"]
        seen = rows["t" if tied else "i"]
        constraints += [other - seen for other in rows.values()]
    shift = np.append(np.ones(size), 0.0)[None]
    bounds = [(-1, 1)] * size + [(-1, 1) if ties else (0, 0)]
    for place, sign in itertools.product(range(size + 1), (-1, 1)):
        aim = np.zeros(size + 1)
        aim[place] = sign
        limits = {"A_ub": np.array(constraints), "b_ub": np.zeros(len(constraints))}
        found = linprog(aim, **limits, A_eq=shift, b_eq=[0], bounds=bounds)
        if found.fun < -1e-7:
            return False
    return True


@pytest.mark.filterwarnings(NONE)
@pytest.mark.parametrize("wins", [10**12, 10**17, 1 << 62, 1e20, 1e200])
@pytest.mark.parametrize("tied", [0, 3])
def test_lopsided_matches_of_two_have_the_strengths_of_their_odds(wins, tied):
    n, times = 2 + bool(tied), [wins, 1, tied]
    weight = {"counts" if isinstance(wins, int) else "sample_weight": times[:n]}
    arena = sm.BradleyTerry().update(["a"] * n, ["b"] * n, ["a", "b", "tie"][:n], **weight)
    assert arena.compute().to_dict()["a"] == pytest.approx(math.log(wins) / 2, rel=1e-12)
    low = arena.confidence().low.to_dict()["a"]
    # The variance of log odds is 1 / wins + 1 / losses; a squared weight of 1e200 is no float64.
    if wins == 1e200:
        assert math.isnan(low)
    elif isinstance(wins, int):
        assert low == pytest.approx(math.log(wins) / 2 - Z / 2, rel=1e-9)


def test_a_player_whose_only_match_is_a_tie_among_equals_is_fitted():
    # The score of the match is a rounding error, whatever the processor.
    a, b, winner = [3, 1, 3, 1, 1, 0, 1, 1], [1, 2, 1, 3, 3, 3, 3, 2], [3, -1, 3, -1, 1, -1, 1, 1]
    for shift in range(40):
        weight = 1 + shift / 7
        arena = sm.BradleyTerry(tie="-1").update(
            list(map(str, a)), list(map(str, b)), list(map(str, winner)), sample_weight=[weight] * 8
        )
        found = arena.compute().to_dict()
        assert found["0"] == pytest.approx(found["3"], abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*has limits that are nan")
def test_weights_too_far_apart_to_be_fitted_are_told():
    arena = sm.BradleyTerry().update(
        ["a"] * 3, ["b"] * 3, ["a", "b", "tie"], sample_weight=[1e300, 1, 1e-300]
    )
    with pytest.warns(sm.UndefinedMetricWarning, match="weights are too far apart"):
        assert np.isnan(arena.compute()).all()
    assert np.isnan(arena.confidence().low).all()


@pytest.mark.filterwarnings(NONE)
@pytest.mark.parametrize("seed", range(60))
def test_the_value_is_nan_just_where_there_is_no_maximum(seed):
    rng = np.random.default_rng(seed)
    size, n = int(rng.integers(2, 5)), int(rng.integers(3, 9))
    pairs = [tuple(rng.permutation(size)[:2].tolist()) for _ in range(n)]
    tied = rng.random(n) < (0.0, 0.3, 0.7)[seed % 3]
    wins = [pair for pair, tie in zip(pairs, tied, strict=True) if not tie]
    ties = [pair for pair, tie in zip(pairs, tied, strict=True) if tie]
    players = sorted({player for pair in pairs for player in pair})
    places = {player: place for place, player in enumerate(players)}
    a, b = zip(*pairs, strict=True)
    metric = sm.BradleyTerry().update(a, b, np.where(tied, np.nan, a))
    moved = [[(places[i], places[j]) for i, j in each] for each in (wins, ties)]
    exists = has_maximum(len(players), *moved)
    assert exists == (not np.isnan(metric.compute()).any())
    assert np.isnan(metric.nu) == (not exists)
    if exists:
        np.testing.assert_allclose(
            metric.compute(), np.array(fitted(a, b, np.where(tied, np.nan, a))[1], float), atol=1e-9
        )
    else:
        assert set(metric.ranks().values()) == {(1, len(players))}
        assert np.isnan(metric.confidence().low).all()


@pytest.mark.parametrize(
    ("a", "b", "winner", "match"),
    [
        ("xx", "yz", "xx", "'x' never lost to 'y', 'z'"),
        ("xyxz", "yzyw", "xyyz", "never lost to"),
        ("xx", "yy", ["x", None], "the more 'x' are above 'y'"),
        ("xx", "yy", [None, "tie"], "all matches of 'x', 'y' are ties"),
        ("xyx", "yzz", ["x", None, None], "the more 'x', 'z' are above 'y'"),
    ],
)
def test_the_warning_names_the_players(a, b, winner, match):
    metric = sm.BradleyTerry().update(list(a), list(b), list(winner))
    with pytest.warns(sm.UndefinedMetricWarning, match=match):
        assert np.isnan(metric.compute()).all()


def test_a_tie_connects_both_players():
    metric = sm.BradleyTerry().update(list("xyx"), list("yxz"), ["x", "y", None])
    assert np.isfinite(metric.compute()).all()


def test_sides_and_order_do_not_matter():
    rows = matches(np.random.default_rng(3), 200)
    swapped = {"a": rows["b"], "b": rows["a"], "winner": rows["winner"]}
    one = sm.BradleyTerry().update(**rows)
    assert sm.BradleyTerry().update(**swapped).to_bytes() == one.to_bytes()
    said = np.where(rows["winner"] == "tie", None, rows["winner"])
    assert sm.BradleyTerry().update(**{**rows, "winner": said}).to_bytes() == one.to_bytes()


def test_another_word_for_a_tie_and_a_player_of_that_name():
    one = sm.BradleyTerry(tie="both").update(list("xyx"), list("yxy"), ["x", "y", "both"])
    assert one.nu == pytest.approx(1.0)
    named = sm.BradleyTerry().update(["tie", "x"], ["x", "tie"], ["tie", "x"])
    assert named.nu == 0.0


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (
            (["x", "x"], ["y", "y"], ["x", "q"]),
            r"did not play in 1 row, first in row 1 \('q",
        ),
        (([1, 2], [2, 3], ["x", "x"]), "winner did not play in 2 rows, first in row 0"),
        ((["x"], ["x"], ["x"]), "b is the same player as a in 1 row, first in row 0"),
        (([1], ["x"], [1]), "a holds integers, and b holds strings"),
        ((["x", None], ["y", "y"], ["x", "y"]), "a is missing .* in 1 row, first in row 1"),
        ((["x"], ["y", "z"], ["x"]), "rows"),
    ],
)
def test_bad_rows_are_refused_and_nothing_changes(rows, match):
    metric = sm.BradleyTerry().update(list("xyx"), list("yxz"), ["x", "y", None])
    before = metric.to_bytes()
    with pytest.raises(sm.InvalidBatchError, match=match):
        metric.update(*rows)
    assert metric.to_bytes() == before


def test_ties_are_refused_without_a_model_of_them():
    with pytest.raises(sm.InvalidBatchError, match=r"is a tie in 1 row, first in row 1; ties='dav"):
        sm.BradleyTerry(ties=None).update(list("xy"), list("yx"), ["x", "tie"])


def test_rows_without_a_player_are_omitted_if_said():
    metric = sm.BradleyTerry(nan_policy="omit").update(
        ["x", None, "y", "x"], ["y", "y", "x", "z"], ["x", "y", "y", None]
    )
    assert (metric.n_rows, metric.n_omitted) == (3, 1)


def test_limits_by_unit_and_slices():
    rng = np.random.default_rng(5)
    rows = matches(rng, 4000)
    rows |= {"user": rng.integers(0, 300, 4000), "task": rng.choice(["code", "prose"], 4000)}
    suite = sm.MetricSet({"arena": sm.BradleyTerry()}, unit="user")
    suite.update({name: rows[name] for name in ("a", "b", "winner", "user")})
    by_user, by_row = suite["arena"].confidence(), suite["arena"].confidence(unit=None)
    assert by_user.method == "300 units, Student's t"
    assert by_row.method == "sandwich"
    widths = (by_user.high - by_user.low) / (by_row.high - by_row.low)
    assert ((widths > 0.7) & (widths < 1.4)).all()
    slices = sm.Slices(sm.MetricSet({"arena": sm.BradleyTerry()}), by=[[], ["task"]])
    slices.update({name: rows[name] for name in ("a", "b", "winner", "task")})
    part = rows["task"] == "code"
    alone = sm.BradleyTerry().update(*(rows[name][part] for name in ("a", "b", "winner")))
    assert slices[{"task": "code"}]["arena"].copy().to_bytes() == alone.to_bytes()


def test_ranks_are_of_pairs_that_differ():
    rows = matches(np.random.default_rng(1), 20_000)
    ranks = sm.BradleyTerry().update(**rows).ranks()
    assert list(ranks) == ["eel", "bee", "dog", "ant", "cat"]
    assert [tuple(limits) for limits in ranks.values()] == [(n, n) for n in range(1, 6)]
    few = sm.BradleyTerry().update(**matches(np.random.default_rng(1), 40)).ranks()
    assert any(limits.low < limits.high for limits in few.values())
    with pytest.raises(ValueError, match="level|share"):
        sm.BradleyTerry().ranks(2.0)


# The shares are of players and samples; 800 samples of 6 players are a minute.
@pytest.mark.long
@pytest.mark.filterwarnings(NONE)
@pytest.mark.parametrize(("n", "log_nu"), [(100, -0.5), (300, -np.inf), (1000, 0.0)])
def test_limits_cover(n, log_nu):
    rng = np.random.default_rng(11)
    true = np.linspace(-1, 1, 6)
    ranks = np.arange(6, 0, -1)
    inside, ranked = [], []
    for _ in range(800):
        first, second, won = simulated(rng, n, true, log_nu)
        winner = np.select([won == 0, won == 1], [first, second], np.nan)
        metric = sm.BradleyTerry().update(first, second, winner)
        low, high = metric.confidence()
        inside.append((low <= true) & (true <= high))
        found = metric.ranks()
        ranked.append(all(found[k].low <= ranks[k] <= found[k].high for k in range(6)))
    assert 0.93 <= np.mean(inside) <= 0.97
    assert np.mean(ranked) >= 0.94
