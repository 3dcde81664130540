"""Labels judged against labels, or a score against a threshold."""
