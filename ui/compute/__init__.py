"""Running models and computations in slots, with cached results."""
