"""Lessons on linear attention: a stream of pairs, recall, costs, and models that use it."""
