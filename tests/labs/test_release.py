"""What is wrong with a source is named: the file, the cell, and what to do."""

import json

import pytest

from losslab.grading import Item, Lab, LabError, Values
from losslab.labs.release import (
    SourceError,
    address_from,
    find_labs,
    make_copy,
    module_copy,
    notebook_copy,
    rubric,
)

HEAD = """---
jupytext:
  text_representation: {extension: .md, format_name: myst, format_version: 0.13}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A lab

<!-- rubric -->

```{code-cell} ipython3
:tags: [setup]

from losslab import labs
device = labs.setup("infonce")
```

"""
STEP = """## Step 2: halve

```{code-cell} ipython3
:nbgrader: {grade_id: halve, solution: true}

def halve(x):
    \"\"\"Half of x.\"\"\"
    given = 2
    ### BEGIN SOLUTION
    return x / given
    ### END SOLUTION
```

"""
ANSWER = """+++ {"nbgrader": {"grade_id": "reflection", "solution": true, "points": 2}}

<!-- ### BEGIN SOLUTION -->
What a marker looks for.
<!-- ### END SOLUTION -->

+++

The end.
"""


def draw(random, size):
    return {"x": float(random.integers(size))}


def a_lab(*functions):
    checked = [Item(f"item-{name}", f"to {name}", 3, 2, Values(name, draw, lambda x: x / 2)) for name in functions]
    return Lab("infonce", "A lab", "infonce", 30, [*checked, Item("reflection", "a reflection", 2, 3)])


def copied(text, lab=None, **options):
    return notebook_copy(text, lab or a_lab("halve"), where="labs/x/lab.md", **options)["cells"]


def text_of(cells, grade_id):
    return next("".join(c["source"]) for c in cells if c["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)


def test_solution_goes_and_the_lines_around_it_stay():
    cells = copied(HEAD + STEP + ANSWER)
    assert text_of(cells, "halve") == (
        'def halve(x):\n    """Half of x."""\n    given = 2\n'
        '    raise NotImplementedError("Step 2 is not written yet: halve")'
    )
    assert text_of(cells, "reflection") == "*Write your answer here.*"
    assert "".join(cells[-1]["source"]) == "The end."
    assert "return x / given" in text_of(copied(HEAD + STEP, solved=True), "halve")


def test_two_solutions_in_one_cell_are_named_after_their_functions():
    two = (
        STEP.replace("```\n\n", "")
        + "\n\ndef twice(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION\n```\n"
    )
    assert [line.strip() for line in text_of(copied(HEAD + two), "halve").splitlines() if "raise" in line] == [
        f'raise NotImplementedError("Step 2 is not written yet: {name}")' for name in ("halve", "twice")
    ]


def test_rubric_is_the_marking_files():
    table = rubric(a_lab("halve"))
    assert table.splitlines()[2:] == [
        "| 2 | to halve | 3 | by tests you do not see |",
        "| 3 | a reflection | 2 | by hand |",
        "| | together | 5 | 3 of them by tests |",
    ]
    assert table in "".join(copied(HEAD + STEP)[0]["source"])


def test_cells_have_fixed_ids_and_the_metadata_nbgrader_wants():
    cells = copied(HEAD + STEP + ANSWER)
    assert [cell["id"] for cell in cells] == [f"cell-{i:02d}" for i in range(1, len(cells) + 1)]
    assert json.dumps(cells) == json.dumps(copied(HEAD + STEP + ANSWER))
    marks = {
        cell["metadata"]["nbgrader"]["grade_id"]: cell["metadata"]["nbgrader"]
        for cell in cells
        if "nbgrader" in cell["metadata"]
    }
    assert {name: (m["grade"], m["solution"], m["locked"]) for name, m in marks.items()} == {
        "locked-02": (False, False, True),
        "halve": (False, True, False),
        "reflection": (True, True, False),
    }
    assert marks["reflection"]["points"] == 2


def test_first_cell_names_the_address_of_the_books_settings(tmp_path):
    config = tmp_path / "_config.yml"
    assert address_from(config) == ""
    config.write_text('repository:\n  url: ""\n  branch: main\n', encoding="utf-8")
    assert address_from(config) == ""
    config.write_text("repository:\n  url: https://example.org/some/lab/\n  branch: next\n", encoding="utf-8")
    assert address_from(config) == "losslab @ git+https://example.org/some/lab@next"
    first = "".join(copied(HEAD + STEP, address=address_from(config))[1]["source"])
    assert "ADDRESS = 'losslab @ git+https://example.org/some/lab@next'" in first
    assert first.endswith("device = labs.setup('infonce')")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            HEAD + STEP.replace("    ### END SOLUTION\n", ""),
            r"cell 4 \(def halve\(x\):\): ### BEGIN SOLUTION without ### END",
        ),
        (HEAD + STEP.replace("    ### BEGIN SOLUTION\n", ""), "### END SOLUTION without ### BEGIN SOLUTION"),
        (HEAD + STEP.replace("    return", "    ### BEGIN SOLUTION\n    return"), "a second ### BEGIN SOLUTION"),
        (HEAD + STEP.replace(":nbgrader: {grade_id: halve, solution: true}\n", ""), "holds a solution and no metadata"),
        (HEAD + STEP.replace("solution: true", "solution: false"), "holds a solution and no metadata"),
        (HEAD + STEP.replace("grade_id: halve, ", ""), "without a grade_id"),
        (HEAD + STEP + STEP.replace("def halve", "def third"), "grade_id 'halve' is used 2 times"),
        (HEAD + STEP.replace("## Step 2: halve", "## Halve"), "stands under no heading 'Step 1'"),
        (HEAD + STEP.replace("def halve", "def third"), "defines no halve, which marking.py marks; it defines third"),
        (HEAD + STEP.replace("def halve(x):", "def halve(x:"), "labs/x/lab.md: .*in the code"),
        (HEAD.replace(":tags: [setup]\n", "") + STEP, "exactly one cell must be tagged setup, 0 are"),
        (HEAD.replace("<!-- rubric -->", "") + STEP, "put <!-- rubric --> where the table of points belongs"),
        (HEAD + STEP + ANSWER.replace(', "points": 2', ""), "marked by hand and has no points"),
        (HEAD + STEP + ANSWER.replace("<!-- ### END SOLUTION -->", ""), "### BEGIN SOLUTION without ### END SOLUTION"),
        (
            HEAD + STEP.replace("    ### BEGIN SOLUTION\n", "").replace("    ### END SOLUTION\n", ""),
            "is said to hold a solution, but has no ### BEGIN SOLUTION",
        ),
    ],
)
def test_what_is_wrong_with_a_notebook_is_named(text, message):
    with pytest.raises(SourceError, match=message) as caught:
        copied(text)
    assert str(caught.value).startswith("labs/x/lab.md")
    assert "\n" not in str(caught.value)


MODULE = '''"""A module."""
# rubric

# Step 1. Halve it.


def halve(x):
    """Half of x."""
    ### BEGIN SOLUTION
    return x / 2
    ### END SOLUTION


# Step 2


class Doubler:
    def twice(self, x):
        ### BEGIN SOLUTION
        return 2 * x
        ### END SOLUTION
'''


def test_module_is_copied_the_same_way():
    made = module_copy(MODULE, a_lab("halve"), where="solution.py")
    assert (
        '    """Half of x."""\n    raise NotImplementedError("Step 1 is not written yet: halve")\n\n\n# Step 2' in made
    )
    assert '        raise NotImplementedError("Step 2 is not written yet: twice")\n' in made
    assert "# | 2 | to halve | 3 | by tests you do not see |\n" in made
    assert "return" not in made
    assert "return x / 2" in module_copy(MODULE, a_lab("halve"), where="solution.py", solved=True)
    compile(made, "made", "exec")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MODULE.replace("# rubric\n", ""), "put a line '# rubric'"),
        (MODULE.replace("# Step 1. Halve it.", "# Halve it."), "stands under no heading"),
        (MODULE.replace("def halve", "def third"), "defines no halve"),
        (MODULE.replace("    ### END SOLUTION\n\n\n#", "\n\n#"), "BEGIN SOLUTION without"),
    ],
)
def test_what_is_wrong_with_a_module_is_named(text, message):
    with pytest.raises(SourceError, match=message):
        module_copy(text, a_lab("halve"), where="solution.py")


def test_a_lab_without_source_or_marking_file_is_named(tmp_path):
    (tmp_path / "labs" / "other").mkdir(parents=True)
    (tmp_path / "labs" / "other" / "lab.md").write_text(HEAD + STEP, encoding="utf-8")
    with pytest.raises(LabError, match=r"no lab 'infonce' with a source in .*; there are other"):
        make_copy(tmp_path / "labs" / "infonce")
    with pytest.raises(LabError):
        make_copy(tmp_path / "labs" / "other")
    with pytest.raises(FileNotFoundError, match="is in no checkout with a labs folder"):
        find_labs(tmp_path / "labs")
