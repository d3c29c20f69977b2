"""The command line: parse, call one recipe, render. The only place that prints."""
