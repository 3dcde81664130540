"""Checks for authors of metrics.

`check_laws` checks the laws that every metric of the package satisfies, on rows of your choice.
`check_metric` reports everything that is missing or broken in a new metric.
"""

from streammetrics.testing.authors import check_metric
from streammetrics.testing.laws import check_laws, same_value, split_rows

__all__ = ["check_laws", "check_metric", "same_value", "split_rows"]
