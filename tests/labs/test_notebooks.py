"""Every source with its solutions, run from top to bottom in a kernel of its own; and its live cell, driven there."""

import re

import nbclient

STANDARD = {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}


def test_the_source_runs_and_every_check_in_it_is_kept(notebook_lab, run_source):
    notebook, _ = run_source(notebook_lab)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    assert "✗" not in printed
    assert printed.count("✓") >= 3
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []


def test_every_picture_lies_on_its_target(notebook_lab, run_source):
    """At least three steps show one, each with a description for whoever cannot see it."""
    notebook, _ = run_source(notebook_lab)
    shown = [
        output.data
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "data" in output
    ]
    pictures = [data for data in shown if "<img alt=" in data.get("text/html", "")]
    assert len(pictures) >= 3
    assert all(len(data["text/plain"]) > 20 for data in pictures)
    assert all("not finite" not in data["text/plain"] for data in pictures)


def test_outputs_are_what_vs_code_and_colab_show(notebook_lab, run_source):
    """Text, HTML and, by their own copy of the widget manager, ipywidgets: nothing else is asked of them, no script is
    there to be run, and every widget is a standard one of ipywidgets' own.
    """
    notebook, _ = run_source(notebook_lab)
    live = 0
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert set(output.get("data", {})) <= STANDARD
            assert "<script" not in output.get("data", {}).get("text/html", "")
            live += "application/vnd.jupyter.widget-view+json" in output.get("data", {})
    assert live >= 1
    state = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
    assert {one["model_module"] for one in state} <= {"@jupyter-widgets/base", "@jupyter-widgets/controls"}


def test_every_control_calls_the_students_function(notebook_lab, run_source):
    _, moved = run_source(notebook_lab)
    assert moved
    for one in moved:
        assert one["called"], one
        assert not one["failed"], one
        assert one["changed"], one
        assert one["label"].strip(), one
        assert one["alt"], one


def test_a_fresh_copy_runs_to_its_end_and_says_in_lines_what_is_due(notebook_lab, student_copy, labs_folder):
    """Run all before anything is written: every step is named, and nothing else is an error."""
    notebook = student_copy(notebook_lab)
    where = {"metadata": {"path": str(labs_folder / notebook_lab)}}
    nbclient.NotebookClient(notebook, timeout=120, allow_errors=True, resources=where).execute()
    outputs = [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]
    assert [one.evalue for one in outputs if one.output_type == "error"] == []
    assert [one.text for one in outputs if one.get("name") == "stderr"] == []
    said = "".join(one.text for one in outputs if one.output_type == "stream")
    due = re.findall(r"^○ Step (\d) is not written yet: \w+$", said, re.MULTILINE)
    steps = re.findall(r'"Step (\d) is not written yet', "\n".join(cell.source for cell in notebook.cells))
    assert set(due) == set(steps)
    assert "✓" not in said
    assert "✗" not in said
