"""Small experiments on the text models that ship, which answer the book's exercises on pretraining."""
