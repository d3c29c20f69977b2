"""Predicting over files and streams."""
