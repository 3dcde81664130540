"""What other tools are told: Prometheus, Grafana, OpenTelemetry."""
