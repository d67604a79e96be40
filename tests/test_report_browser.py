"""Pages of reports in a browser."""

import re

import pytest
from browser import Browser, find_browser
from documents import row, slower, sweep
from report_documents import write_all

from opencl_lab.cli import main


@pytest.fixture(scope="module")
def browser():
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium is installed (on Debian: apt-get install chromium)")
    found = Browser(path)
    yield found
    found.close()


WIDER = """[...document.querySelectorAll("body *")].filter(item =>
  !item.closest(".scroll > *, svg") && item.getBoundingClientRect().right > innerWidth + 0.5
).map(item => item.outerHTML.slice(0, 80))"""
COLUMN = (
    "[...document.querySelectorAll('table')[%d].tBodies[0].rows].map(r => r.cells[%d].innerText)"
)
CONTRAST = """[...document.querySelectorAll("body, .options, .ok, .failed, .opencl, a")].map(item =>
  [getComputedStyle(item).color, getComputedStyle(document.body).backgroundColor])"""


def luminance(colour):
    """Return the relative luminance of ``rgb(r, g, b)`` (WCAG 2)."""
    shares = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_in_a_browser(tmp_path, browser):
    write_all(tmp_path)
    assert main(["report", str(tmp_path), "--quiet"]) == 0
    page = tmp_path / "report.html"
    for width in (375, 1440):
        for dark in (False, True):
            browser.open(page, width, dark=dark)
            assert browser.run("innerWidth") == width
            assert browser.run("document.documentElement.scrollWidth") == width
            assert browser.run(WIDER) == []
            for text, back in browser.run(CONTRAST):
                light, dim = sorted((luminance(text), luminance(back)), reverse=True)
                assert (light + 0.05) / (dim + 0.05) > 4.5, (text, back)
            assert (luminance(back) < 0.1) == dark
    # Numbers are sorted as numbers, those without one are last either way, words as words.
    index = browser.run(
        "[...document.querySelectorAll('table')].findIndex(t => t.innerText.includes('merge-path'))"
    )
    click = f"document.querySelectorAll('table')[{index}].querySelectorAll('th button')[%d].click()"
    before = browser.run(COLUMN % (index, 2))
    numbers = [float(text) for text in before if text]
    for reverse in (False, True):
        browser.run(click % 2)
        shown = browser.run(COLUMN % (index, 2))
        assert [float(text) for text in shown if text] == sorted(numbers, reverse=reverse)
        assert shown[len(numbers) :] == [""] * (len(before) - len(numbers)) != []
        state = f"document.querySelectorAll('table')[{index}].querySelector('[aria-sort]').ariaSort"
        assert browser.run(state) == ("descending" if reverse else "ascending")
    browser.run(click % 1)
    names = browser.run(COLUMN % (index, 1))
    assert names == sorted(names) and names != browser.run(COLUMN % (index, 0))
    # A tooltip is the title of what is under the pointer.
    marks = browser.run("document.querySelectorAll('.mark > title').length")
    assert marks > 20
    assert not browser.errors
    browser.run("console.error('seen')")
    assert browser.errors  # so the test above can fail
    browser.errors.clear()


def test_the_page_works_without_its_script(tmp_path, browser):
    sweep(tmp_path / "a.json", row(), slower(2, "c:seq"))
    assert main(["report", str(tmp_path), "--quiet"]) == 0
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(tmp_path / "report.html")
        assert browser.run("document.querySelectorAll('table').length") == 1
        assert browser.run("document.querySelectorAll('button').length") == 0
        assert browser.run(COLUMN % (0, 0)) == ["opencl:radix", "c:seq"]
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
