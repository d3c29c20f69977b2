"""Benchmarks: one file a question. Each takes its peers in turn in one run and reports ratios of medians."""
