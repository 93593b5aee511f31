"""Steps that are not written yet: one line where a notebook's cell calls one, and the notebook goes on."""

from __future__ import annotations

import ast
import builtins
import os
import re
from typing import Any

UNWRITTEN = re.compile(r"Step \d+ is not written yet: \w+")


def is_unwritten(problem: BaseException | None) -> bool:
    """Whether it is what a student copy raises where work is due."""
    return isinstance(problem, NotImplementedError) and UNWRITTEN.fullmatch(str(problem)) is not None


def show_in_one_line() -> bool:
    """Let the cells of this notebook say ``○ Step 2 is not written yet: name`` instead of stopping with a traceback.

    Called again, it changes nothing. A name that a cell so cut short would have made is said in the same way by the
    cells that need it. All other errors are shown as ever. Where nbgrader runs the notebook nothing is changed: a test
    cell of its own has its points unless the cell ends with an error.

    Returns
    -------
    bool
        False where this is no notebook, or nbgrader runs it.
    """
    if os.environ.get("NBGRADER_EXECUTION"):
        return False
    try:
        shell: Any = getattr(builtins, "get_ipython")()  # noqa: B009
    except AttributeError:
        return False
    if shell is None:
        return False
    if getattr(shell, "losslab_unwritten", None) is None:
        shell.losslab_unwritten = _Cells(shell)
    return True


class _Cells:
    """What became of the cells of one notebook."""

    def __init__(self, shell: Any) -> None:  # noqa: ANN401
        self.shell = shell
        self.said: BaseException | None = None
        self.why = ""
        self.owed: dict[str, str] = {}  # a name that a cell would have made, and the step it waits for
        shell.set_custom_exc((NotImplementedError, NameError), self.show)
        shell.events.register("post_run_cell", self.after)

    def show(self, shell: Any, kind: type[BaseException], problem: BaseException, trace: Any, **_: object) -> None:  # noqa: ANN401
        name = getattr(problem, "name", None) if isinstance(problem, NameError) else None
        why = str(problem) if is_unwritten(problem) else self.owed.get(name or "")
        if why is None or name in shell.user_ns:
            shell.showtraceback((kind, problem, trace), running_compiled_code=True)
            return
        print(f"○ {why}")
        self.said, self.why = problem, why

    def after(self, result: Any) -> None:  # noqa: ANN401
        """The cell has not failed: then "run all cells" goes on to the next."""
        if result is None:
            return
        made = _assigned(str(getattr(result.info, "raw_cell", "")))
        if self.said is not None and result.error_in_exec is self.said:
            result.error_in_exec = None
            self.owed |= dict.fromkeys(made - set(self.shell.user_ns), self.why)
        elif result.error_in_exec is None:
            for name in made:
                self.owed.pop(name, None)
        self.said = None


def _assigned(code: str) -> set[str]:
    """Names that a cell stores."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return set()
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
