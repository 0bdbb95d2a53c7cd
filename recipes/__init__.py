"""`python -m recipes NAME`: train, evaluate and document the shipped models."""
