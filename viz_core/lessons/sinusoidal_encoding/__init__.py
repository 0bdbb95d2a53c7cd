"""Properties of a sinusoidal table, and its effect on word vectors."""
