"""Predictors in three phases: prepare, run, decode."""
