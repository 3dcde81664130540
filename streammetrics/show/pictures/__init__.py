"""Pictures of results, drawn by Matplotlib."""
