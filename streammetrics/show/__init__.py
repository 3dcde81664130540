"""Output of results: terminal tables, file formats, HTML reports and pictures."""
