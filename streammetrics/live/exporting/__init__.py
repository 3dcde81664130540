"""Exports for other tools: Prometheus, Grafana and OpenTelemetry."""
