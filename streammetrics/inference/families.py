"""All families of metrics whose intervals are known; importing it makes them so."""

from streammetrics.inference import means, scores, tables
from streammetrics.inference import means as correlations
from streammetrics.inference import means as moments
from streammetrics.inference import means as order
from streammetrics.inference import means as rankings
from streammetrics.inference import means as texts
from streammetrics.inference import scores as curves
from streammetrics.inference import tables as labelings
from streammetrics.inference import tables as multilabel

__all__ = [
    "correlations",
    "curves",
    "labelings",
    "means",
    "moments",
    "multilabel",
    "order",
    "rankings",
    "scores",
    "tables",
    "texts",
]
