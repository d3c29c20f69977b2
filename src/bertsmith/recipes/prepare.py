"""Preparing a corpus from files."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bertsmith.corpus.config import CorpusConfig
from bertsmith.corpus.corpus import Corpus
from bertsmith.recipes.text_sources import prepare_files
from bertsmith.text.documents import TextConfig, find_files
from bertsmith.tokenization.tokenizer import Tokenizer


def prepare_run(
    sources: Sequence[str],
    tokenizer: str | Path,
    out: str | Path,
    config: CorpusConfig = CorpusConfig(),
    text: TextConfig = TextConfig(),
    *,
    on_progress: Callable[[int], None] | None = None,
) -> Corpus:
    """Tokenize files and folders of text into a corpus folder.

    Raises:
        InputError: if a source cannot be read, the tokenizer not loaded, or `out` holds something else.
    """
    loaded = Tokenizer.from_folder(tokenizer)
    return prepare_files(find_files(sources), loaded, Path(out), text=text, config=config, on_progress=on_progress)
