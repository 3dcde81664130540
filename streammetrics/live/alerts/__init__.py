"""Alert rules: functions of the panes in which no more rows are expected."""
