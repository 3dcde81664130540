"""The options that say what is read: files, and the columns in them."""

from __future__ import annotations

from typing import Annotated

import typer

from streammetrics.cli.parsing import option

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Parquet, Arrow, CSV, JSON lines or tagged text: files, folders, globs; - is standard "
        "input.",
    ),
]
YTrue = Annotated[str | None, option("The column of true labels or values.")]
YScore = Annotated[
    list[str] | None,
    option(
        "The column of scores; for several classes a list p0,p1,p2 or a glob 'p*'. Given again: "
        "another model, shown beside the first."
    ),
]
YPred = Annotated[
    list[str] | None,
    option("The column of predicted labels or values. Given again: another model."),
]
Scale = Annotated[
    str | None, option("forecasting: the column of what errors of the series are relative to.")
]
YLow = Annotated[str | None, option("forecasting: the column of the intervals' lower ends.")]
YHigh = Annotated[str | None, option("forecasting: the column of their upper ends.")]
YMean = Annotated[str | None, option("forecasting: the column of means of normal forecasts.")]
YStd = Annotated[str | None, option("forecasting: the column of their standard deviations.")]
YEnsemble = Annotated[
    str | None, option("forecasting: the columns of an ensemble's members, a list or a glob.")
]
YQuantiles = Annotated[
    str | None, option("forecasting: the columns of quantiles, in the order of --levels.")
]
Pit = Annotated[str | None, option("forecasting: the column of probability integral transforms.")]
Levels = Annotated[str | None, option("forecasting: the levels of --y-quantiles, as 0.1,0.5,0.9.")]
Ratings = Annotated[
    str | None,
    option("agreement: how many raters chose each category, a column each: a list or a glob."),
]
Item = Annotated[str | None, option("recommendation: the column of items, one a recommendation.")]
Category = Annotated[str | None, option("recommendation: the column of the items' categories.")]
Popularity = Annotated[
    str | None, option("recommendation: the column of the share of users who know the item.")
]
Time = Annotated[str | None, option("survival: the column of times.")]
Event = Annotated[str | None, option("survival: whether the time is of an event, or censored.")]
Reference = Annotated[str | None, option("text: the column of texts as they should be.")]
Prediction = Annotated[
    list[str] | None,
    option("text: the column of texts as they are said. Given again: another model."),
]
TrueBoxes = Annotated[str | None, option("boxes: the column of true boxes, a list for each image.")]
TrueLabels = Annotated[str | None, option("boxes: the column of their classes.")]
TrueCrowd = Annotated[
    str | None, option("boxes: the column of whether they stand for crowds, 1 or 0.")
]
TrueAreas = Annotated[
    str | None, option("boxes: the column of the areas by which they are small or large.")
]
PredBoxes = Annotated[
    list[str] | None,
    option("boxes: the column of predicted boxes. Given again: another model."),
]
PredLabels = Annotated[list[str] | None, option("boxes: the column of their classes.")]
PredScores = Annotated[list[str] | None, option("boxes: the column of their scores.")]
Annotations = Annotated[
    str | None, option("boxes: a COCO file of annotations, instead of PATH.", metavar="FILE")
]
ResultsFiles = Annotated[
    list[str] | None,
    option(
        "boxes: a COCO file of results, with --annotations. Given again: another model.",
        "--results",
        metavar="FILE",
    ),
]
BoxFormat = Annotated[
    str | None,
    option(
        "boxes: what the numbers of a box are; xyxy by default, xywh in COCO's files.",
        metavar="xyxy|xywh|cxcywh",
    ),
]
Values = Annotated[str | None, option("aggregation: the column of values.")]
Weight = Annotated[str | None, option("The column of row weights.")]
Query = Annotated[str | None, option("ranking: the column of query ids; recommendation: of lists.")]
Relevance = Annotated[
    str | None, option("ranking: the column of relevances; null where not judged.")
]
Score = Annotated[
    list[str] | None,
    option(
        "ranking: the column of scores, null where not retrieved; survival: that of risks. Given "
        "again: another model."
    ),
]
Doc = Annotated[str | None, option("ranking: the column of document ids.")]
QueryWeight = Annotated[str | None, option("ranking: the column of the queries' weights.")]
Qrels = Annotated[
    str | None, option("ranking: a TREC file of judgments, instead of PATH.", metavar="FILE")
]
Run = Annotated[
    list[str] | None,
    option(
        "ranking: a TREC file of results, with --qrels. Given again: another model.",
        metavar="FILE",
    ),
]
LabelsTrue = Annotated[
    str | None, option("clustering: the column of true labels; agreement: of one labeling.")
]
LabelsPred = Annotated[
    list[str] | None,
    option(
        "clustering: the column of predicted clusters; agreement: of the other labeling. Given "
        "again: another model."
    ),
]
Features = Annotated[
    str | None, option("clustering: the columns of coordinates, a list or a glob 'x*'.")
]
Labels = Annotated[
    str | None,
    option(
        "The classes, as 0,1,2 or cat,dog, for averages over classes also some; clustering: the "
        "column of the clusters of --features."
    ),
]
