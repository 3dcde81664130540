"""All kinds of pictures, registered; Matplotlib is imported when one is drawn."""

from streammetrics.show.pictures import curves, values
from streammetrics.show.pictures import curves as calibration
from streammetrics.show.pictures import values as forests
from streammetrics.show.pictures import values as series
from streammetrics.show.pictures import values as tables

__all__ = ["calibration", "curves", "forests", "series", "tables", "values"]
