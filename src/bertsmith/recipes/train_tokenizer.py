"""Training a tokenizer from files, and looking at one."""

from collections.abc import Sequence
from pathlib import Path

from bertsmith.foundation.errors import InputError
from bertsmith.foundation.files import new_folder
from bertsmith.recipes.text_sources import new_tokenizer
from bertsmith.text.documents import TextConfig, find_files, read_documents
from bertsmith.tokenization.config import TokenizerConfig
from bertsmith.tokenization.report import TokenizerReport, report
from bertsmith.tokenization.tokenizer import Tokenizer


def train_tokenizer_run(
    sources: Sequence[str], out: str | Path, config: TokenizerConfig, text: TextConfig = TextConfig()
) -> Tokenizer:
    """Train a tokenizer on files and folders of text, and write its folder.

    Raises:
        InputError: if `out` exists already, or a source or setting cannot be used.
    """
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("--out must be a new or empty folder", folder, "Choose another folder.")
    files = find_files(sources)
    tokenizer = new_tokenizer(files, text, config)
    with new_folder(folder, seal={"kind": "tokenizer"}) as temporary:
        tokenizer.save(temporary)
    return tokenizer


def report_tokenizer_run(
    folder: str | Path, sources: Sequence[str], text: TextConfig = TextConfig()
) -> TokenizerReport:
    """How well a tokenizer fits text."""
    tokenizer = Tokenizer.from_folder(folder)
    files = find_files(sources)
    return report(tokenizer, (document.text for document in read_documents(files, text)))
