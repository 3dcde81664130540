"""Rows grouped beforehand: the columns to group by, and the statement for a database."""

from __future__ import annotations

from typing import NamedTuple

from streammetrics.core.columns.batch import COUNTS, is_glob, is_several, listed, near
from streammetrics.core.metric_set import MetricSet

# How each dialect quotes a name.
_QUOTES = {"duckdb": '"', "postgres": '"', "bigquery": "`", "spark": "`"}


class GroupBy(NamedTuple):
    """The columns of a table that a set reads, which a database can group by.

    Attributes:
        columns: The columns to group by.
        counts: The column of counts that the set reads.
    """

    columns: tuple[str, ...]
    counts: str

    def sql(self, table: str, dialect: str = "duckdb") -> str:
        """Return the statement that groups a table, as the set reads it.

        Args:
            table: The table, as it stands after FROM: a name, quoted where it needs to be, or a
                query in brackets.
            dialect: ``"duckdb"``, ``"postgres"``, ``"bigquery"`` or ``"spark"``.

        Raises:
            ValueError: The dialect is unknown.
        """
        if dialect not in _QUOTES:
            raise ValueError(f"sql(dialect={dialect!r}){near(dialect, _QUOTES)}")
        quote = _QUOTES[dialect]
        backslash = "\\" if dialect == "bigquery" else quote
        names = [
            f"{quote}{name.replace(quote, backslash + quote)}{quote}"
            for name in (*self.columns, self.counts)
        ]
        columns = ", ".join(names[:-1])
        return f"SELECT {columns}, COUNT(*) AS {names[-1]} FROM {table} GROUP BY {columns}"


def group_by(suite: MetricSet) -> GroupBy:
    """Return the columns that a set or slices read, to group rows by them in a database.

    Grouped rows with their counts give the same bytes as the rows, where the set is made with
    ``counts=``. It helps where rows repeat: labels, or scores that are rounded. Columns that are
    optional are included only if ``columns`` names them.

    Raises:
        TypeError: The argument is not a set.
        ValueError: A metric does not take counted rows, which the message explains; or a column is
            given by a pattern, so that its names are not known.

    Example:
        >>> import streammetrics as sm
        >>> suite = sm.MetricSet({"f1": sm.F1()}, columns={"y_true": "label"}, counts="n")
        >>> sm.group_by(suite).columns
        ('label', 'y_pred')
        >>> print(sm.group_by(suite).sql("predictions"))
        SELECT "label", "y_pred", COUNT(*) AS "n" FROM predictions GROUP BY "label", "y_pred"
    """
    if not isinstance(suite, MetricSet):
        raise TypeError('group_by takes a set: group_by(MetricSet({"f1": F1()}))')
    for name, metric in suite._metrics.items():
        for statistic in metric.statistics():
            if statistic.uncounted:
                raise ValueError(f"{name!r} does not take counted rows: {statistic.uncounted}")
    counts = suite.columns.get(COUNTS, COUNTS)
    columns: list[str] = []
    for text in suite._needed:
        if is_glob(text):
            raise ValueError(f"the columns {text!r} are not known here: name each, as 'p0,p1,p2'")
        columns += listed(text) if is_several(text) else [text]
    read = tuple(dict.fromkeys(name for name in columns if name != counts))
    return GroupBy(read, counts)
