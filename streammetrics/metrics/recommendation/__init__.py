"""What was recommended, as a whole: how much of the catalogue, how novel, how diverse."""
