"""Options and arguments of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from streammetrics.cli.parsing import (
    complete_format,
    complete_metrics,
    complete_task,
    option,
    refuse_format,
    share,
)
from streammetrics.cli.tasks import TASKS
from streammetrics.readers.paths import FORMATS

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


Task = Annotated[
    str,
    option(
        "What is predicted.",
        metavar="|".join(TASKS),
        show_default=False,
        autocompletion=complete_task,
    ),
]
Metrics = Annotated[
    list[str] | None,
    option(
        "What to compute, such as 'F1,FBeta(beta=2),ROCAUC', instead of the default; "
        "streammetrics metrics lists what there is.",
        autocompletion=complete_metrics,
    ),
]
Threshold = Annotated[
    float | None, option("Scores from here on are positive; 0.5 if there is no --y-pred.")
]
MaxBins = Annotated[
    int | None, option("Distinct scores kept apart; past them values are certified intervals.")
]
NanPolicy = Annotated[
    str | None,
    option("What to do with rows that lack a value; raise by default.", metavar="raise|omit"),
]
FromLogits = Annotated[
    bool,
    option("Scores are logits: probabilities are made of them, row by row.", "--from-logits"),
]
IgnoreIndex = Annotated[int | None, option("Leave out rows with this true label.")]
PosLabel = Annotated[str | None, option("The positive class; 1 by default.")]
Average = Annotated[
    str | None,
    option(
        "How classes are averaged; metrics that lack an average (ROCAUC has no micro) keep "
        "their own default, which --json shows.",
        metavar="binary|micro|macro|weighted|none",
    ),
]
K = Annotated[
    list[str] | None,
    option(
        "ranking: how many results count, such as 5,10,100, in every metric that takes k and "
        "does not say its own; 10 by default in the default metrics."
    ),
]
Preset = Annotated[
    str | None,
    option(
        "ranking: another tool's conventions; trec_eval by default with --qrels.",
        metavar="trec_eval|sklearn",
    ),
]
Ties = Annotated[
    str | None,
    option(
        "ranking: equal scores in expectation, or by descending document.", metavar="average|doc"
    ),
]
RelevantAt = Annotated[float | None, option("ranking: the least relevance that is one.")]
NoRelevant = Annotated[
    str | None, option("ranking: queries without a relevant document.", metavar="zero|skip")
]
Unretrieved = Annotated[
    str | None,
    option("ranking: judged queries without results; zero is trec_eval's -c.", metavar="zero|skip"),
]
Confidence = Annotated[
    float | None,
    option(
        "Also print limits that hold the value of the population in this share of all samples.",
        metavar="SHARE",
        callback=share,
    ),
]
Unit = Annotated[
    str | None,
    option(
        "Limits of --confidence are those of a sample of units, not of rows: the column that says "
        "which rows belong together, such as user. none: of rows, even if a state keeps units.",
        metavar="COLUMN",
    ),
]
PerQuery = Annotated[bool, option("Show the value of each query too.", "--per-query")]
By = Annotated[
    list[str] | None,
    option(
        "Slices too: a column, several as country,device, numbers in bins as age:18:30:50, times "
        "as when:day (hour, week, month). "
        "Given again: another kind of slice.",
        metavar="COLUMN[,COLUMN]...",
    ),
]
MinRows = Annotated[int, option("Show no slices of fewer rows.", min=0)]
Worst = Annotated[
    str | None,
    option(
        "Show the slices where this metric is worst, the surest first, with confidence limits.",
        metavar="METRIC",
    ),
]
MaxSlices = Annotated[int, option("How many slices there may be; more are a mistake.", min=1)]
InputFormat = Annotated[
    str | None,
    option(
        "The files' format, where their endings do not say it.",
        metavar="|".join(FORMATS),
        autocompletion=complete_format,
    ),
]
OldFormat = Annotated[str | None, option("", "--format", hidden=True, callback=refuse_format)]
Delimiter = Annotated[
    str | None,
    option(
        "What is between the fields of CSV, such as ';' or tab; by default what the first rows of "
        "each file say."
    ),
]
BatchRows = Annotated[int, option("Rows read at a time, at most.", min=1)]
Workers = Annotated[
    int, option("Threads or processes that read; the result is the same to the last bit.", min=1)
]

Json = Annotated[str | None, option("Write the results as JSON.", "--json", metavar="FILE|-")]
Csv = Annotated[str | None, option("Write the results as CSV.", "--csv", metavar="FILE|-")]
Markdown = Annotated[
    str | None, option("Write the tables as Markdown.", "--markdown", metavar="FILE|-")
]
Save = Annotated[str | None, option("Save the state, for show, merge or Python.", metavar="STATE")]
Force = Annotated[
    bool, option("Replace files that were not written by the same option before.", "--force")
]
