"""`python -m viz_core.training NAME`: data, loop, evaluation, model card."""
