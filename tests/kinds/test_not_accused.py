"""The law kit finds nothing in any metric of the package."""

from __future__ import annotations

import numpy as np
import pytest
from thinning import some

from kinds.rows import FIRST, named
from streammetrics.testing import check_metric


@pytest.mark.parametrize("oracle", some(FIRST, every=160), ids=named)
def test_no_metric_of_the_package_is_accused(oracle):
    rows = oracle.rows(np.random.default_rng(99), min(oracle.n, 40))
    value = oracle.metric.copy().update(**rows).compute()
    strict = isinstance(value, int | float) and oracle.rel <= 1e-9 and oracle.abs <= 1e-12
    check_metric(oracle.metric, rows, oracle=oracle.reference if strict else None)
