"""Measures on attention maps: entropy, roles of heads, rollout, relevance, distance, residuals."""
