"""Files in: Parquet, Arrow, CSV, JSON lines and TREC, a batch of the needed columns at a time."""
