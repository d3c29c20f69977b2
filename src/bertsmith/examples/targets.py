"""What targets say beside what must be found."""

IGNORED = -100
"""A target id that asks for nothing, the number that torch's losses know."""
