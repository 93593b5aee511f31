"""What tests of several parts share."""

import shutil

import pytest
from playwright.sync_api import sync_playwright

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.fixture(scope="session")
def browser():
    """The one browser of a test process: Playwright can be started only once in it."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("the page tests need Chromium: install it so that 'chromium' is on the PATH (see .ci/run)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield chromium
        chromium.close()


def pytest_terminal_summary(terminalreporter):
    """Print what tests measured: ``request.node.user_properties.append(("measured", "…"))``."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == "measured":
                terminalreporter.write_line(f"measured: {value}")
