"""All kinds of pictures, registered; Matplotlib is imported when one is drawn."""

from streammetrics.show.pictures import curves, values

__all__ = ["curves", "values"]
