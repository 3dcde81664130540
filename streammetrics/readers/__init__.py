"""Readers of Parquet, Arrow, CSV, JSON lines, CoNLL, COCO and TREC files, in batches."""
