"""How sure a value is: confidence of metrics, read from their states."""
