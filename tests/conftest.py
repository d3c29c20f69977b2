"""Every test runs with the shapes and types in annotations checked."""

import os

from jaxtyping import install_import_hook

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
install_import_hook("bertsmith", "beartype.beartype")
