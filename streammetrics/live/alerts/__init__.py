"""Alerts: rules that are functions of panes which no more rows are expected in."""
