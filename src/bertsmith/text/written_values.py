"""Values that a cell holds as text: lists and objects as JSON, Python, numpy or pandas write them; truth values."""

import ast
import json
import re
import warnings
from typing import Any

_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ITEM = rf"(?:{_STRING}|[-+.]*\d[-+.\w]*|True|False)"
_NUMPY_LIST = re.compile(rf"\[\s*{_ITEM}(?:\s+{_ITEM})+\s*\]", re.DOTALL)
"""A list as numpy, and so pandas and `datasets`, writes it into a .csv file: without commas, over several lines."""
_GLUED = re.compile(r"''\s*\w*''")
_FLAGS = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}


def read_written(text: str) -> Any:
    """What a text stands for in JSON, in Python, or as a list of numpy's.

    Raises:
        ValueError: if it stands for nothing in these.
    """
    for read in (json.loads, _read_python):
        try:
            return read(text.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    raise ValueError(f"{text!r:.60}")


def read_flag(value: Any) -> bool | None:
    """The truth value that a cell holds, as one, as 0 or 1 or in words; None where it holds something else."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    return _FLAGS.get(value.strip().lower()) if isinstance(value, str) else None


def _read_python(text: str) -> Any:
    with warnings.catch_warnings():
        # A backslash that escapes nothing is no fault of a name.
        warnings.simplefilter("ignore")
        if _NUMPY_LIST.fullmatch(text):
            return [ast.literal_eval(item) for item in re.findall(_ITEM, text, re.DOTALL)]
        if _GLUED.search(re.sub(_STRING, "''", text, flags=re.DOTALL)):
            raise ValueError("Python takes texts without a comma between them for one")
        return ast.literal_eval(_WithoutNumpy().visit(ast.parse(text, mode="eval")))


class _WithoutNumpy(ast.NodeTransformer):
    """Takes ``array([1, 2], dtype=int32)`` for its list and ``np.int64(1)`` for its number, as pandas writes them."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The only argument of what numpy calls its values; other calls stay, and are refused."""
        match node.func:
            case ast.Name("array") | ast.Attribute(ast.Name("np")) if len(node.args) == 1:
                return self.visit(node.args[0])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """``np.True_`` and ``np.False_``, which are no calls."""
        truths = {"True_": True, "False_": False}
        is_numpy = isinstance(node.value, ast.Name) and node.value.id == "np"
        return ast.Constant(truths[node.attr]) if is_numpy and node.attr in truths else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Refuse three dots, which stand for what numpy left out of a long list."""
        if node.value is ...:
            raise ValueError("a list that was cut short")
        return node
