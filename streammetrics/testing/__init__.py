"""Checks for whoever writes a metric: the laws on rows of your choice, and all at once.

`check_laws` is what every metric of the package passes; `check_metric` tells the author of a new
one everything that is missing or broken, in one report.
"""

from streammetrics.testing.authors import check_metric
from streammetrics.testing.laws import check_laws, same_value, split_rows

__all__ = ["check_laws", "check_metric", "same_value", "split_rows"]
