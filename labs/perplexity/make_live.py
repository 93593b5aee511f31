"""Make ``live.ipynb`` from ``live.md``: ``python labs/perplexity/make_live.py``, with ``--check`` to write nothing.

The student copy of this lab is a module, which ``losslab labs release`` makes; this is the notebook that drives it.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

from losslab.grading import load_lab
from losslab.labs.release import address_from, notebook_copy

HERE = Path(__file__).resolve().parent


def live_notebook() -> str:
    """Text of the notebook."""
    lab = replace(load_lab(HERE), functions=("perplexities",))  # what this notebook defines; the module has the others
    source = (HERE / "live.md").read_text(encoding="utf-8")
    address = address_from(HERE.parents[1] / "_config.yml")
    notebook = notebook_copy(source, lab, where="labs/perplexity/live.md", address=address)
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    path, text = HERE / "live.ipynb", live_notebook()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if path.is_file() and path.read_text(encoding="utf-8") == text else f"{path} is out of date")
    path.write_text(text, encoding="utf-8")
    print(path)
