"""What must be true of a translation by the Transformer, measured."""
