"""Tokens on disk: preparing, opening, verifying."""
