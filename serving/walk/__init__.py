"""One forward pass of a model that ships, taken apart: every state from the tokens to the word that is chosen."""
