"""`python -m recipes NAME`: data, loop, evaluation, model card."""
