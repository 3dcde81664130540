"""How far labels hang together: association of two, agreement of several raters."""
