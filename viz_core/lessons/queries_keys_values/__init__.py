"""Looking names up in a small table, and what weights of a sum can be."""
