"""What is remembered of rows without a label: states that keep the laws and refuse forgeries."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.forging import arrays_of
from live.events import START

import streammetrics as sm
from streammetrics.authoring import Metric
from streammetrics.core.state.container import packed, unpacked
from streammetrics.live.possible.remembered import Called, Classes, ScoreCells, Terms
from streammetrics.testing import check_laws


class Numbers(Metric[float]):
    """How many predictions there are."""

    def statistics(self):
        """Return all that is remembered of scores."""
        return (
            ScoreCells(of="score", max_bins=4),
            ScoreCells(of="score", max_bins=64),
            Called(of="score", threshold=0.5),
            Terms(of="score", loss="log"),
            Terms(of="score", loss="brier"),
        )

    def update(self, score):
        """Take rows."""
        return self.feed({"score": score})

    def readout(self, *kept):
        """Return the number of rows."""
        return float(sum(kept[2].rows.counts))


class Names(Metric[float]):
    """How many predictions there are."""

    def statistics(self):
        """Return all that is remembered of classes."""
        return (Classes(of="name"),)

    def update(self, name):
        """Take rows."""
        return self.feed({"name": name})

    def readout(self, classes):
        """Return the number of rows."""
        return float(sum(classes.counts.values()))


@pytest.mark.parametrize(
    ("metric", "column"),
    [
        (Numbers, np.random.default_rng(0).integers(0, 33, 120) / 32),
        (Names, np.random.default_rng(0).integers(-3, 9, 60)),
        (Names, np.array(["bee", "ant", "", "cat"] * 15)),
    ],
)
def test_it_keeps_the_laws(metric, column):
    name = "score" if metric is Numbers else "name"
    check_laws(metric(), {name: column}, trials=2)
    found = metric().update(column)
    assert found.compute() == len(column)
    blob = found.to_bytes()
    kept = [s.restored(arrays_of(blob, place)) for place, s in enumerate(found.statistics())]
    if metric is Names:
        assert kept[0].counts == {x: (column == x).sum() for x in set(column.tolist())}
        return
    assert kept[2].rows.counts.tolist() == [(column < 0.5).sum(), (column >= 0.5).sum()]
    likelier = (column >= 0.5).astype(int)
    for terms, loss in ((kept[3], sm.LogLoss()), (kept[4], sm.BrierScore(scale_by_half=False))):
        for total, labels in ((terms.least, likelier), (terms.most, 1 - likelier)):
            mean = loss.copy().update(labels, column).compute()
            assert total.to_float() / len(column) == pytest.approx(mean, rel=1e-15)


def test_a_file_that_says_otherwise_of_rows_that_left_is_refused():
    suite = sm.MetricSet({"f1": sm.F1(threshold=0.5), "loss": sm.LogLoss(), "auc": sm.ROCAUC()})
    live = sm.Live(suite, label_ttl="5min", label_lateness="5min")
    live.predict(id=range(40), time=START + np.arange(40), y_score=np.arange(40) / 40)
    live.predict(id="later", time=START + 3600, y_score=0.5)
    file = unpacked(live.to_bytes())
    told = {name: value for name, value in file.meta.items() if name != "checksum"}
    assert packed(told, file.arrays) == live.to_bytes()
    names = [name for name in file.arrays if name.startswith("left/")]
    assert names
    for name in names:
        without = {key: array for key, array in file.arrays.items() if key != name}
        more = {**file.arrays, name: file.arrays[name][..., None]}
        wrongs = [without, more]
        if name.endswith(("counts", "rows")):
            wrongs += [{**file.arrays, name: file.arrays[name] + n} for n in (1, -100)]
        for wrong in wrongs:
            with pytest.raises(sm.StateFormatError, match="."):
                sm.from_bytes(packed(told, wrong))
    for left in ([], "left", None):
        with pytest.raises(sm.StateFormatError, match="not the bytes"):
            sm.from_bytes(packed({**told, "left": left}, file.arrays))
