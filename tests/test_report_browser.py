"""Pages of reports in a browser."""

import re
import time

import pytest
from browser import Browser, find_browser
from documents import row, slower, sweep
from report_documents import write_all
from test_report_kinds import many

from opencl_lab.lab.cli import main

pytestmark = pytest.mark.full


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


BROKEN = """[...document.querySelectorAll("th")].flatMap(head => {
  const walk = document.createTreeWalker(head, NodeFilter.SHOW_TEXT), found = [];
  for (let node; (node = walk.nextNode()); )
    for (const word of node.data.matchAll(/[^\\s:[@-]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (range.getClientRects().length > 1) found.push(word[0]);
    }
  return found;
})"""
CUT = """[...document.querySelectorAll(".overview .scroll, .scroll:has(.sortable)")]
  .filter(box => box.scrollWidth > box.clientWidth && !box.matches(".plot"))
  .map(box => box.ariaLabel)"""
OVER = """[...document.querySelectorAll("tbody th")].filter(head => {
  const range = document.createRange();
  range.selectNodeContents(head);
  return range.getBoundingClientRect().right > head.getBoundingClientRect().right;
}).map(head => head.innerText)"""
NAMES = """[...document.querySelectorAll(".scroll:has(.sortable)")].flatMap(box => {
  box.scrollLeft = 1000;
  const left = box.getBoundingClientRect().left;
  return [...box.querySelectorAll("tbody th")].map(x => x.getBoundingClientRect().left - left);
})"""


def test_tables_fit_or_keep_the_names_of_their_rows_in_sight(tmp_path, browser):
    sizes = 10, 100, 1000, 10**4, 10**5, 10**7
    many(tmp_path / "a.json", sizes, "numpy", "opencl:naive[constant]@device", "torch")
    many(tmp_path / "b.json", [10], "numpy", "c:" + 30 * "x")
    write_all(tmp_path / "others")
    assert main(["report", str(tmp_path), "--quiet"]) == 0
    browser.open(tmp_path / "report.html", 1440)
    assert set(browser.run(BROKEN)) <= {30 * "x"} and browser.run(CUT) == []
    browser.open(tmp_path / "report.html", 375)
    assert browser.run(OVER) == []  # no name lies over a time
    assert set(browser.run(BROKEN)) <= {30 * "x"}
    assert not [label for label in browser.run(CUT) if label.startswith("ratios")]
    places = browser.run(NAMES)
    assert len(places) > 20 and min(places) >= 0  # px from the left of what is scrolled


def test_the_page_works_without_its_script(tmp_path, browser):
    sweep(tmp_path / "a.json", row(), slower(2, "c:seq"))
    assert main(["report", str(tmp_path), "--quiet"]) == 0
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(tmp_path / "report.html")
        assert browser.run("document.querySelectorAll('table').length") == 2
        assert browser.run("document.querySelectorAll('button').length") == 0
        assert browser.run(COLUMN % (1, 0)) == ["opencl:radix", "c:seq"]
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_thousands_of_rows_stay_fast_and_can_be_searched(tmp_path, browser):
    path = many(tmp_path / "a.json", range(1, 1001), "opencl:radix", "numpy", "c:seq", "c:omp", "d")
    assert main(["report", str(path), "--quiet"]) == 0
    browser.open(tmp_path / "report.html", 375)
    assert browser.run("document.documentElement.scrollWidth") == 375
    assert browser.run(WIDER) == []
    took = "(() => { const begin = performance.now(); %s; return performance.now() - begin; })()"
    head = "document.querySelectorAll('table.sortable')[0].querySelectorAll('th button')[2].click()"
    assert browser.run(took % head) < 3000  # ms; about 100 on an idle machine
    shown = [float(text) for text in browser.run(COLUMN % (1, 2))]
    assert len(shown) == 5000 and shown == sorted(shown)
    typed = (
        "(() => { const box = document.querySelector('.search input'); box.value = 'NumPy, 77'; "
    )
    typed += "box.dispatchEvent(new Event('input')); })()"
    assert browser.run(took % typed) < 3000
    visible = (
        "[...document.querySelectorAll('.sortable tbody tr')].filter(row => !row.hidden).length"
    )
    count = browser.run(visible)
    assert 0 < count < 200
    assert browser.run("document.querySelector('.search').innerText").endswith(
        f"{count} of 5000 rows"
    )
    box = "document.querySelector('.scroll.long').getBoundingClientRect().height"
    assert browser.run(box) < 900
    assert not browser.errors


def test_tooltips_are_shown_and_commands_copied(tmp_path, browser):
    write_all(tmp_path)
    assert main(["report", str(tmp_path), "--quiet"]) == 0
    browser.open(tmp_path / "report.html")
    assert browser.run("document.querySelector('.contents').open")  # there is room for it
    browser.run(
        "document.querySelector('.mark').dispatchEvent(new Event('pointerover', {bubbles: true}))"
    )
    shown = browser.run("document.querySelector('figure .tooltip').textContent")
    assert shown and shown == browser.run("document.querySelector('.mark > title').textContent")
    commands = browser.run("document.querySelectorAll('pre.command').length")
    assert commands == browser.run("document.querySelectorAll('button.copy').length") == 5
    browser.run("document.querySelector('button.copy').click()")
    limit = time.monotonic() + 10
    while browser.run("document.querySelector('button.copy').textContent") == "Copy":
        assert time.monotonic() < limit, "nothing was copied, nor selected"
        time.sleep(0.02)
    browser.open(tmp_path / "report.html", 375)
    assert not browser.run("document.querySelector('.contents').open")
    for target in browser.run("[...document.querySelectorAll('nav a')].map(a => a.hash)"):
        assert browser.run(f"document.querySelector('{target}') !== null"), target
    assert not browser.errors


def test_a_printed_page_has_all_rows_and_no_controls(tmp_path, browser):
    path = many(tmp_path / "a.json", range(1, 41), "opencl:radix", "numpy")
    assert main(["report", str(path), "--quiet"]) == 0
    browser.open(tmp_path / "report.html", 720)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.run("document.documentElement.scrollWidth") == 720
        hidden = "[...document.querySelectorAll('nav, .search, .copy')].map(i => i.offsetHeight)"
        assert set(browser.run(hidden)) == {0}
        box = "(b => b.scrollHeight <= b.clientHeight)(document.querySelector('.scroll.long'))"
        assert browser.run(box)  # nothing of the table is out of sight
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
    browser.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
