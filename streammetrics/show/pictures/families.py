"""All kinds of pictures, registered; Matplotlib is imported when one is drawn."""

from streammetrics.show.pictures import (
    calibration,
    curves,
    forests,
    series,
    tables,
    values,
)

__all__ = ["calibration", "curves", "forests", "series", "tables", "values"]
