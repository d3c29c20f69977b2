"""Packed batches under a token budget, and the loader whose position is a number."""
