"""Pictures as PNG and SVG, drawn by matplotlib, which comes with the extra `pictures`."""
