"""Texts to learn from and to search: apidocs, whose embeddings are shipped, and SciFact; and their encoder."""
