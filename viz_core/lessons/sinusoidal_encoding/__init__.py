"""What must be true of a table of sinusoids, and what adding it does to words."""
