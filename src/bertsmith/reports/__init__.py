"""Run reports and model cards."""
