"""Terms of rows that subtract nearly equal numbers keep their digits: against 80-digit arithmetic.

`docs/laws.md` lists them.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, getcontext, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import streammetrics as sm

DIGITS = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)
POWERS = [1, 2, 1.5, 3, -1, -3.7, 4, 20, -20, 1.0000001, 1.25, 1.49, 1.51, 1.75, 1.9999999,
          2.0000001, 2.2, 2.6, -0.01]  # fmt: skip


@pytest.fixture(autouse=True)
def _many_digits():
    with localcontext(DIGITS):
        yield


def numbers(values):
    return [Decimal(float(value)) for value in values]


def pairs(*columns):
    return zip(*map(numbers, columns), strict=True)


def agree(found, exact, error=1e-12):
    for one, other in zip(found, exact, strict=True):
        assert abs(Decimal(float(one)) - other) <= Decimal(error) * abs(other) + Decimal("1e-307")


def each_row(metric, *columns):
    """Return the value of each row alone."""
    return [
        type(metric)(**metric.config).update(*(column[i : i + 1] for column in columns)).compute()
        for i in range(len(columns[0]))
    ]


def rows(seed, n=60):
    """Return positive predictions, and targets from 1e-16 to 1 times them away, and far ones."""
    rng = np.random.default_rng(seed)
    p = 10.0 ** rng.uniform(-3, 3, n)
    y = p * (1 + 10.0 ** rng.uniform(-17, 0, n) * rng.choice([-1, 1], n))
    y[: n // 4] = 10.0 ** rng.uniform(-3, 3, n // 4)
    return y, p


def exact_deviance(y, p, q):
    if y == p:
        return Decimal(0)
    if q == 1:
        return 2 * ((y * (y / p).ln() if y else 0) - y + p)
    if q == 2:
        return 2 * ((p / y).ln() + y / p - 1)
    own = y ** (2 - q) if y > 0 else 0
    return 2 * (own / ((1 - q) * (2 - q)) - y * p ** (1 - q) / (1 - q) + p ** (2 - q) / (2 - q))


@pytest.mark.parametrize("power", POWERS)
def test_deviances(power):
    y, p = rows(1, 200)
    p = np.append(p, [1e-30, 1e30, 2.0, 3.0])
    y = np.append(y, [1e-30, 1e30, 0.0 if power < 2 else 1.0, -2.0 if power <= 0 else 3.0])
    found = each_row(sm.TweedieDeviance(power=power), y, p)
    agree(found, [exact_deviance(a, b, Decimal(power)) for a, b in pairs(y, p)])
    assert min(found) >= 0


@pytest.mark.parametrize("power", [1, 1.5, 2, 3, -1])
def test_deviances_whose_powers_overflow_or_underflow(power):
    rng = np.random.default_rng(2)
    p = 10.0 ** rng.uniform(-150, 150, 100)
    y = p * np.where(np.arange(100) % 2, 1 + rng.normal(0, 1e-6, 100), 10.0 ** rng.uniform(-9, 9))
    exact = [exact_deviance(a, b, Decimal(power)) for a, b in pairs(y, p)]
    holds = np.array([value < Decimal("1e308") for value in exact])
    found = each_row(sm.TweedieDeviance(power=power), y[holds], p[holds])
    agree(found, [value for value, fits in zip(exact, holds, strict=True) if fits])


@pytest.mark.parametrize("power", [1, 1.5, 2, 3, -1])
@pytest.mark.parametrize(("spread", "error"), [
    (0.3, 1e-12), (1e-3, 1e-12), (1e-6, 1e-12), (1e-8, 1e-11), (1e-10, 1e-8), (1e-12, 1e-9),
])  # fmt: skip
def test_share_of_the_deviance_where_targets_hardly_vary(power, spread, error):
    rng = np.random.default_rng(3)
    y = 37 * (1 + spread * rng.gamma(1.0, 1.0, 40))
    p = y * (1 + 0.3 * spread * rng.normal(size=40))
    of, at = numbers(y), numbers(p)
    mean = sum(of) / len(of)
    q = Decimal(power)
    left = sum(exact_deviance(a, b, q) for a, b in zip(of, at, strict=True))
    left /= sum(exact_deviance(a, mean, q) for a in of)
    value = sm.D2Tweedie(power=power).update(y, p).compute()
    assert value <= 1
    agree([value], [1 - left], error)
    assert sm.D2Tweedie(power=power).update(y, y).compute() == 1.0


def test_logarithmic_errors():
    y, p = rows(4)
    y[0], p[0], y[1], p[1] = -1 + 1e-12, -1 + 1.0001e-12, 1e300, 1e300 * (1 + 1e-12)
    exact = [((1 + a).ln() - (1 + b).ln()) ** 2 for a, b in pairs(y, p)]
    agree(each_row(sm.MSLE(), y, p), exact)


def test_log_cosh():
    p = np.zeros(40)
    y = 10.0 ** np.linspace(-25, 2.5, 40)
    agree(
        each_row(sm.LogCoshError(), y, p), [((d.exp() + (-d).exp()) / 2).ln() for d in numbers(y)]
    )


def probabilities(seed, n=60):
    """Return probabilities near 0, near 1 and between."""
    rng = np.random.default_rng(seed)
    near = 10.0 ** rng.uniform(-15, -1, n)
    return np.choose(np.arange(n) % 3, [near, 1 - near, rng.random(n)])


@pytest.mark.parametrize("label", [0, 1])
def test_losses_of_confident_rows(label):
    s = probabilities(5)
    truth = [a if label else 1 - a for a in numbers(s)]
    labels = np.full(len(s), label)
    classes = {"labels": [0, 1]}
    agree(each_row(sm.LogLoss(**classes), labels, s), [-t.ln() for t in truth])
    focal = [-((1 - t) ** 2) * t.ln() for t in truth]
    agree(each_row(sm.FocalLoss(gamma=2.0, **classes), labels, s), focal)
    agree(each_row(sm.BrierScore(**classes), labels, s), [(1 - t) ** 2 for t in truth])


def test_losses_of_confident_logits():
    z = np.linspace(-40, 40, 41)
    two, three = np.stack([np.zeros(41), z], axis=1), np.stack([np.zeros(41), z, z - 50], axis=1)
    for logits in (two, three):
        sums = [sum(a.exp() for a in numbers(row)) for row in logits]
        exact = [total.ln() - Decimal(row[1]) for total, row in zip(sums, logits, strict=True)]
        labels = list(range(logits.shape[1]))
        metric = sm.LogLoss(from_logits=True, labels=labels)
        agree(each_row(metric, np.ones(41, int), logits), exact)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_focal_losses_of_confident_logits(gamma, classes):
    z = np.array([-700.0, -100, -40, -36.5, -35, -30, -20, -3, -1e-9, 0, 2, 20, 30, 35, 40, 100])
    others = [-z] if classes == 1 else [-z, np.full(z.size, -50.0)][: classes - 1]
    logits = z if classes == 1 else np.stack([0 * z, z, z - 50][:classes], axis=1)
    options = {"from_logits": True, "labels": list(range(max(classes, 2)))}
    ones = np.ones(z.size, int)
    found = each_row(sm.FocalLoss(gamma=gamma, **options), ones, logits)
    odds = [sum(a.exp() for a in row) for row in pairs(*others)]
    focus = [(a / (1 + a)) ** Decimal(gamma) if gamma else 1 for a in odds]
    exact = [one * (1 + a).ln() for one, a in zip(focus, odds, strict=True)]
    agree(found, exact)
    if classes == 1:
        assert each_row(sm.FocalLoss(gamma=gamma, **options), 0 * ones, -z) == found
    if gamma == 0:
        assert found == each_row(sm.LogLoss(**options), ones, logits)


def test_hinge_of_a_margin_near_1():
    rng = np.random.default_rng(6)
    own, best = rng.normal(size=50), np.zeros(50)
    best = own - 1 + 10.0 ** rng.uniform(-15, -1, 50)
    scores = np.stack([own, best, best - 3], axis=1)
    metric = sm.HingeLoss(labels=[0, 1, 2])
    agree(
        each_row(metric, np.zeros(50, int), scores),
        [max(1 - (a - b), Decimal(0)) for a, b, _ in map(numbers, scores)],
    )


def test_divergences_of_nearly_equal_distributions():
    rng = np.random.default_rng(7)
    p = rng.dirichlet([1.0, 2.0, 3.0], 40)
    step = 10.0 ** rng.uniform(-14, -2, (40, 1)) * (p[:, :1] * [1, -0.5, -0.5])
    q = np.where(p[:, 1:2] + step[:, 1:2] > 0, p + step, p)
    q = np.clip(q, 1e-12, 1.0)
    exact = [
        sum(a * (a / b).ln() - a + b for a, b in pairs(*pair)) for pair in zip(p, q, strict=True)
    ]
    found = each_row(sm.KLDivergence(), p, q)
    agree(found, exact)
    assert min(found) >= 0
    assert each_row(sm.KLDivergence(), p, p) == [0.0] * 40
    assert sm.KLDivergence().update([[1.0, 0.0]], [[1.0, 0.0]]).compute() == 0.0


@pytest.mark.parametrize("share", [3e-16, 2e-16, 1e-16, 1e-300])
def test_divergences_of_tiny_probabilities_are_not_negative(share):
    """A clipped prediction was in the logarithm only, and not beside it."""
    q = share * np.array([0.0, 0.1, 0.5, 0.7, 0.999, 1.0, 3.0])
    p = np.full(q.size, share)
    two = np.stack([p, 1 - p], axis=1), np.stack([q, 1 - q], axis=1)
    clipped = np.maximum(q, np.minimum(p, 2.0**-52))
    exact = [a * (a / b).ln() - a + b for a, b in pairs(p, clipped)]
    rest = [a * (a / b).ln() - a + b for a, b in pairs(*(side[:, 1] for side in two))]
    found = each_row(sm.KLDivergence(), *two)
    for value, a, b in zip(found, exact, rest, strict=True):
        assert value >= 0
        assert abs(Decimal(value) - (a + b)) <= Decimal("1e-12") * (a + b) + Decimal("1e-90")
    assert min(each_row(sm.KLDivergence(), p, q)) >= 0


def test_divergences_and_cross_entropies_of_two_classes():
    p = probabilities(8)
    q = np.clip(p * (1 + 1e-7 * np.random.default_rng(9).normal(size=p.size)), 1e-15, 1 - 1e-15)
    both = list(pairs(p, q))
    divergence = [a * (a / b).ln() + (1 - a) * ((1 - a) / (1 - b)).ln() for a, b in both]
    agree(each_row(sm.KLDivergence(), p, q), divergence)
    entropy = [-a * b.ln() - (1 - a) * (1 - b).ln() for a, b in both]
    agree(each_row(sm.CrossEntropy(), p, q), entropy)


@pytest.mark.parametrize("fair", [False, True])
def test_probability_scores_of_ensembles(fair):
    rng = np.random.default_rng(10)
    members = rng.normal(size=(30, 20))
    members[:10, 0] = 1e12  # an outlier, beside which the rest of the score would be lost
    members[10:15] = 3.0 + 1e-9 * rng.normal(size=(5, 20))
    y = np.where(np.arange(30) < 15, 3.0, rng.normal(size=30))
    exact = []
    for target, row in zip(y, members, strict=True):
        of, at = [Fraction(float(x)) for x in row], Fraction(float(target))
        m = len(of)
        apart = Fraction(sum(abs(a - b) for a in of for b in of))
        score = sum(abs(a - at) for a in of) / m - apart / (2 * m * (m - 1 if fair else m))
        exact.append(Decimal(score.numerator) / Decimal(score.denominator))
    found = each_row(sm.CRPSEnsemble(fair=fair), y, members)
    agree(found, exact)
    assert min(found) >= 0


def test_exponential_gains_of_small_relevance():
    relevance = np.array([1e-9, 3e-9, 0.0, 2e-9])
    score = np.array([4.0, 3.0, 2.0, 1.0])
    metric = sm.DCG(gain="exponential").update(np.zeros(4), relevance, score)
    gains = [Decimal(2) ** a - 1 for a in numbers(relevance)]
    exact = sum(g * Decimal(2).ln() / Decimal(i + 2).ln() for i, g in enumerate(gains))
    agree([metric.compute()], [exact])


def entropy_of(weights):
    total = sum(weights)
    return -sum(w / total * (w / total).ln() for w in weights if w)


@pytest.mark.parametrize("weight", [1e-30, 0.5, 1.0, 3.0, 1e6, 1e9, 1e12, 1e17, 1e60])
def test_log_losses_relative_to_those_of_unbalanced_classes(weight):
    rows = {"y_true": [0, 1], "y_score": [1e-10, 0.5], "sample_weight": [weight, 1.0]}
    heavy, small = numbers([weight, 1e-10])
    loss = (-heavy * (1 - small).ln() + Decimal(2).ln()) / (heavy + 1)
    exact = loss / entropy_of([heavy, Decimal(1)])
    agree([sm.NormalizedEntropy().update(**rows).compute()], [exact])
    agree([sm.D2LogLoss().update(**rows).compute()], [1 - exact])


@pytest.mark.parametrize("table", [
    [[2**58, 1], [1, 3]], [[2**58, 0], [0, 1]], [[2**20, 7], [0, 1]], [[3, 1], [0, 2]],
])  # fmt: skip
def test_entropies_of_unbalanced_clusters(table):
    def filled(metric):
        for true, row in enumerate(table):
            for pred, count in enumerate(row):
                part, left = metric().update([true], [pred]), count
                total = metric()
                while left:  # doubled by merging, as nobody waits for 2**58 rows
                    if left & 1:
                        total.merge(part)
                    part, left = part.copy().merge(part), left >> 1
                yield total

    def value(metric):
        first, *others = filled(metric)
        for one in others:
            first.merge(one)
        return first.compute()

    cells = [[Decimal(count) for count in row] for row in table]
    true, pred = list(map(sum, cells)), list(map(sum, zip(*cells, strict=True)))
    n = sum(true)
    mutual = sum(
        count / n * (n * count / (a * b)).ln()
        for a, row in zip(true, cells, strict=True)
        for b, count in zip(pred, row, strict=True)
        if count
    )
    homogeneity, completeness = mutual / entropy_of(true), mutual / entropy_of(pred)
    measure = 2 * homogeneity * completeness / (homogeneity + completeness)
    metrics = sm.MutualInfo, sm.Homogeneity, sm.TheilsU, sm.Completeness, sm.VMeasure
    exact = [mutual, homogeneity, homogeneity, completeness, measure]
    agree(map(value, metrics), exact)


@pytest.mark.parametrize("spread", [0.3, 3.0, 30.0, 100.0])
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_losses_of_saturated_logits(classes, spread):
    getcontext().prec = 250  # terms below 1e-80 are left of ones near 1
    rng = np.random.default_rng(7)
    n = 20
    logits = rng.normal(scale=spread, size=(n, classes))
    wide = np.column_stack([np.zeros(n), logits]) if classes == 1 else logits
    y = rng.integers(0, wide.shape[1], n)
    p = rng.dirichlet(np.full(wide.shape[1], 0.3), n)
    p[:10] = np.eye(wide.shape[1])[y[:10]]
    exact = {name: [] for name in ("brier", "ranked", "excess", "cross", "kl")}
    near = np.empty_like(p)
    for i, row in enumerate(wide):
        odds = [z.exp() for z in numbers(row)]
        q = [each / sum(odds) for each in odds]
        near[i] = [float(each) for each in q]
        if classes == 1:
            near[i, 1] *= 1 + rng.choice([-1e-9, -1e-13])
            near[i, 0] = 1 - near[i, 1]
            p[i, 0] = 1 - p[i, 1]
        best = int(np.argmax(row)) if classes > 1 else 1
        off = [each - (k == y[i]) for k, each in enumerate(q)]
        steps = [sum(off[: k + 1]) for k in range(len(q) - 1)]
        exact["brier"].append(sum(each * each for each in off))
        exact["ranked"].append(sum(each * each for each in steps))
        exact["excess"].append(off[best] if classes == 1 or best == y[i] else q[best])
        exact["cross"].append(-sum(a * b.ln() for a, b in zip(numbers(p[i]), q, strict=True)))
        for truth in (p[i], near[i]):
            a = numbers(truth)
            if classes == 1:
                a[0] = 1 - a[1]
            terms = [(x * (x / m).ln() if x else 0) - x + m for x, m in zip(a, q, strict=True)]
            exact["kl"].append(sum(terms))
    score, options = (logits[:, 0] if classes == 1 else logits), {"from_logits": True}
    truths = np.concatenate([p, near]) if classes > 1 else np.concatenate([p, near])[:, 1]
    labels = options | {"labels": list(range(wide.shape[1]))}
    agree(each_row(sm.BrierScore(scale_by_half=False, **labels), y, score), exact["brier"])
    agree(each_row(sm.CalibrationInTheLarge(**labels), y, score), exact["excess"])
    if classes > 1:
        agree(each_row(sm.RankedProbabilityScore(**labels), y, score), exact["ranked"])
    agree(each_row(sm.CrossEntropy(**options), truths[:n], score), exact["cross"])
    ordered = exact["kl"][::2] + exact["kl"][1::2]
    agree(each_row(sm.KLDivergence(**options), truths, np.concatenate([score, score])), ordered)


def test_infinite_logits_are_probabilities_of_zero_and_one():
    brier = sm.BrierScore(from_logits=True)
    assert brier.update([0, 1], [np.inf, -np.inf]).compute() == 1.0
    masked = [[-np.inf, 0.0, 0.0], [1e308, -1e308, -np.inf]]
    score = sm.BrierScore(from_logits=True, labels=[0, 1, 2])
    assert score.update([1, 2], masked).compute() == (0.5 + 2.0) / 2
    ranked = sm.RankedProbabilityScore(from_logits=True, labels=[0, 1, 2])
    assert ranked.update([1, 2], masked).compute() == (0.25 + 2.0) / 2
    with pytest.raises(sm.InvalidBatchError, match="is infinite"):
        sm.BrierScore(from_logits=True).update([0], [[np.inf, 0.0]])
    with pytest.raises(sm.InvalidBatchError, match="is infinite or too large for a logit"):
        sm.KLDivergence(from_logits=True).update([[0.0, 1.0]], [[-np.inf, 0.0]])


BIG = 2**52 - 5
TABLES = {  # amounts of the current sample and of the reference in bins
    "near": ([10**6 + 1, 10**6, 10**6 - 1], [10**6, 10**6, 10**6]),
    "nearer": ([BIG + 1, BIG - 1, 2], [BIG, BIG, 2]),
    "equal shares": ([10, 20, 30], [1, 2, 3]),
    "far": ([BIG, 1], [1, BIG]),
    "one empty": ([10**15, 7, 0], [10**15, 6, 1]),
    "weights": ([0.1, 0.3, 0.6], [0.1 + 2**-54, 0.3, 0.6]),
    "large weights": ([1e300, 3e300, 1e284], [1e300, 3e300 + 2**945, 1e284]),
    "far weights": ([1e-150, 1.0, 1e150], [2e-150, 1.0, 3e150]),
    "small shares": ([1e-20, 1.0], [3e-20, 1.0]),
    "smaller shares": ([1e-150, 1e155], [1.0, 1.0]),
}


def exact_distances(current, reference, added=0.0):
    """Return the population stability and the Jensen-Shannon distance of amounts in bins."""
    sides = [[Fraction(each) + Fraction(added) for each in side] for side in (current, reference)]
    shares = [
        [Decimal(s.numerator) / Decimal(s.denominator) for s in (each / sum(side) for each in side)]
        for side in sides
    ]
    stability = divergence = Decimal(0)
    for p, q in zip(*shares, strict=True):
        if p != q:
            m = (p + q) / 2
            divergence += sum((x * (x / m).ln() for x in (p, q) if x), Decimal(0)) / 2
            stability += (p - q) * (p / q).ln() if p and q else Decimal("inf")
    return stability, divergence.sqrt()


@pytest.mark.parametrize("added", [0.0, 0.5, 1e-30])
@pytest.mark.parametrize("bins", ["edges", "categories", "quantiles"])
@pytest.mark.parametrize("table", TABLES)
def test_distances_of_shares(table, bins, added):
    getcontext().prec = 600  # the last bits of weights that lie far apart count
    current, reference = TABLES[table]
    size = len(current)
    config = {
        "edges": {"edges": [k + 0.5 for k in range(size - 1)]},
        "categories": {"bins": "categories"},
        "quantiles": {"bins": size},
    }[bins]
    amounts = [*current, *reference]
    name = "counts" if all(isinstance(amount, int) for amount in amounts) else "sample_weight"
    rows = {"sample": [1] * size + [0] * size, "values": [*range(size)] * 2, name: amounts}
    if bins == "quantiles":
        ends = [sum(map(Fraction, reference[: k + 1])) for k in range(size)]
        cut = [
            next(i for i in range(size) if ends[i] * size >= k * ends[-1]) for k in range(1, size)
        ]
        cut = [0, *(i + 1 for i in cut), size]
        current, reference = (
            [sum(map(Fraction, side[a:b])) for a, b in pairwise(cut)]
            for side in (current, reference)
        )
    exact = exact_distances(current, reference, added)
    found = [
        metric(pseudo_count=added, **config).update(**rows)
        for metric in (sm.PopulationStability, sm.JensenShannon)
    ]
    for metric, value in zip(found, exact, strict=True):
        if value.is_infinite():
            assert metric.compute() == float("inf")
        else:
            agree([metric.compute()], [value])
        assert metric.exact
        assert metric.bounds() == (metric.compute(), metric.compute())


def test_quantiles_of_weights_are_those_of_exact_sums():
    weights = [0.1] * 10  # float64 sums of three of them lie above 3 / 10 of the sum of ten
    for cut in range(1, 10):
        rows = {"sample": [0] * 10 + [1] * 10, "values": [*range(10)] * 2}
        given = [*weights, *[1.0] * cut, *[0.0] * (10 - cut)]
        metric = sm.PopulationStability(bins=10, pseudo_count=1.0).update(
            **rows, sample_weight=given
        )
        exact = exact_distances([1] * cut + [0] * (10 - cut), weights, 1.0)
        agree([metric.compute()], exact[:1])


def decimal(value):
    return Decimal(value.numerator) / Decimal(value.denominator)


BIG_TABLES = [
    [[2**50 + 1, 2**50], [2**50, 2**50]],
    [[2**50, 2**50, 2**50 + 1], [2**50, 2**50, 2**50], [2**50 - 1, 2**50, 2**50]],
    [[2**50, 1000], [1000, 1]],
    [[50, 50], [50, 51]],
]


@pytest.mark.parametrize("table", BIG_TABLES)
def test_agreement_of_nearly_independent_labels(table):
    size, cells = len(table), [[Fraction(count) for count in row] for row in table]
    true, pred = list(map(sum, cells)), list(map(sum, zip(*cells, strict=True)))
    n, hits = sum(true), sum(cells[k][k] for k in range(size))
    every = [(i, j) for i in range(size) for j in range(size)]
    by_chance = sum(a * b for a, b in zip(true, pred, strict=True))
    apart = [
        [sum(abs(i - j) ** power * each[i][j] for i, j in every) for power in (1, 2)]
        for each in (cells, [[a * b / n for b in pred] for a in true])
    ]
    spread = (n * n - sum(a * a for a in true)) * (n * n - sum(b * b for b in pred))
    recalls = sum(cells[k][k] / true[k] for k in range(size)) / size
    chi = sum(
        (cells[i][j] - true[i] * pred[j] / n) ** 2 * n / (true[i] * pred[j]) for i, j in every
    )
    pairs = [
        [x * (x - 1) / 2 for x in side]
        for side in ([n], [count for row in cells for count in row], true, pred)
    ]
    total, together, of_true, of_pred = map(sum, pairs)
    expected = of_true * of_pred / total
    mutual = sum(
        decimal(cells[i][j] / n) * decimal(cells[i][j] * n / (true[i] * pred[j])).ln()
        for i, j in every
    )
    exact = [
        (sm.CohenKappa(), (n * hits - by_chance) / (n * n - by_chance)),
        (sm.CohenKappa(weights="linear"), 1 - apart[0][0] / apart[1][0]),
        (sm.CohenKappa(weights="quadratic"), 1 - apart[0][1] / apart[1][1]),
        (sm.BalancedAccuracy(adjusted=True), (recalls * size - 1) / (size - 1)),
        (sm.AdjustedRandIndex(), (together - expected) / ((of_true + of_pred) / 2 - expected)),
    ]
    if size == 2:
        ((tn, fp), (fn, tp)) = cells
        exact.append((sm.Informedness(), tp / (tp + fn) + tn / (tn + fp) - 1))
        exact.append((sm.Markedness(), tp / (tp + fp) + tn / (tn + fn) - 1))
    exact = [(metric, decimal(value)) for metric, value in exact]
    exact.append((sm.MatthewsCorrcoef(), decimal(n * hits - by_chance) / decimal(spread).sqrt()))
    exact.append((sm.CramersV(), decimal(chi / n / (size - 1)).sqrt()))
    exact.append((sm.MutualInfo(), mutual))
    exact.append((sm.TheilsU(), mutual / entropy_of([decimal(each) for each in true])))
    rows = list(zip(*every, strict=True))
    counts = [table[i][j] for i, j in every]
    found = [metric.update(*rows, counts=counts).compute() for metric, _ in exact]
    agree(found, [value for _, value in exact])


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_and_targets_that_are_nearly_unrelated(weighted):
    rng = np.random.default_rng(1)
    n = 200
    score, label = np.repeat(np.sort(rng.random(n)), 2), np.tile([0, 1], n)
    weight = np.repeat(rng.random(n) + 0.5, 2) if weighted else np.ones(2 * n)
    if weighted:
        weight[[11, 200]] += [2.0**-50, 2.0**-40]
    else:
        score[11] += 1e-9
    mass = list(map(Fraction, weight.tolist()))
    sums = [sum(mass[k] for k in range(2 * n) if label[k] == side) for side in (0, 1)]
    gap = area = distance = Fraction(0)
    below, last = [Fraction(0), Fraction(0)], Fraction(0)
    for value in np.unique(score).tolist():
        apart = below[1] / sums[1] - below[0] / sums[0]
        distance += abs(apart) * (Fraction(value) - last)
        here = [
            sum(
                (mass[k] for k in range(2 * n) if score[k] == value and label[k] == side),
                Fraction(0),
            )
            for side in (0, 1)
        ]
        area += here[1] * (2 * below[0] + here[0])
        below = [sum(pair) for pair in zip(below, here, strict=True)]
        gap = max(gap, abs(below[1] / sums[1] - below[0] / sums[0]))
        last = Fraction(value)
    gini = area / (sums[0] * sums[1]) - 1
    rows = {"sample_weight": weight} if weighted else {}
    found = [
        metric.update(label, score, **rows).compute()
        for metric in (sm.Gini(), sm.KolmogorovSmirnov(), sm.KSDistance(), sm.Wasserstein())
    ]
    agree(found, map(decimal, [gini, gap, gap, distance]))

    y = rng.normal(1e6, 1.0, 2 * n)
    x = rng.normal(1e5, 1.0, 2 * n)
    x -= (np.cov(x, y)[0, 1] / y.var(ddof=1)) * (y - y.mean())

    def mean(numbers):
        return sum(w * each for w, each in zip(mass, numbers, strict=True)) / sum(mass)

    def covariance(one, other):
        a, b = mean(one), mean(other)
        return mean([(u - a) * (v - b) for u, v in zip(one, other, strict=True)])

    ys, xs = ([Fraction(each) for each in side.tolist()] for side in (y, x))
    both, of_y, of_x = covariance(ys, xs), covariance(ys, ys), covariance(xs, xs)
    exact = [
        decimal(both) / decimal(of_y * of_x).sqrt(),
        decimal(2 * both / (of_y + of_x + (mean(ys) - mean(xs)) ** 2)),
        decimal(mean(xs) - mean(ys)),
        decimal((2 * both - of_x) / of_y),
    ]
    metrics = sm.PearsonCorrelation, sm.ConcordanceCorrelation, sm.MeanError, sm.ExplainedVariance
    agree([metric().update(y, x, **rows).compute() for metric in metrics], exact)
