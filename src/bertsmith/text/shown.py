"""Text as it can stand in a line of a message."""

import re

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def on_one_line(text: str) -> str:
    """Text with control characters and line ends escaped, ``\\n``, so that they are seen and break no line."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)
