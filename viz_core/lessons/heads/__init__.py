"""The chapter on heads."""
