"""Scores and masks: why 1 / sqrt(d), what masks leak, four scoring functions on the same queries and keys."""
