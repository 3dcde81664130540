"""A streaming query over FOLDER/rows: python spark_stream.py FOLDER KILL_AFTER_BATCH."""

from __future__ import annotations

import os
import signal
import sys

from pyspark.sql import SparkSession
from test_streams import empty

from streammetrics.engines.spark import into


def main(folder, last):
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    write = into(empty(), f"{folder}/states")

    def batch(frame, number):
        write(frame, number)
        if number == last:  # it is written, and its end is not in the checkpoint
            os.kill(os.getpid(), signal.SIGKILL)

    stream = (
        session.readStream.schema("time double, y_true long, y_score double")
        .option("maxFilesPerTrigger", 1)
        .parquet(f"{folder}/rows")
    )
    query = stream.writeStream.foreachBatch(batch).trigger(availableNow=True)
    query.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination()
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
