"""Points and their clusters: sums, centroids, a sample."""
