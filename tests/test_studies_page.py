"""The page of studies at full scale: it is what the tool makes of the stored documents."""

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib
import pytest

from opencl_lab.core.errors import InvalidProblem
from opencl_lab.lab.engine.stored import read_results
from opencl_lab.lab.studies.catalogue import STUDIES
from opencl_lab.lab.studies.stored import stored_outcome

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
STORED = DOCS / "data/studies/h200"
SMALL = 500_000  # bytes of all plots


@pytest.fixture(scope="module")
def tool():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "tools/studies_page.py")))


@pytest.fixture(scope="module")
def made(tool):
    return dict(tool.made(DOCS))


def texts(svg):
    return [item.text for item in ElementTree.fromstring(svg).iter() if item.tag.endswith("}text")]


@pytest.mark.full
def test_the_page_is_made_of_the_documents(made):
    page = DOCS / "studies_h200.md"
    assert page.read_text(encoding="utf-8") == made[page]
    reports = [name for name, study in STUDIES.items() if study.of_a_report]
    assert re.findall("^## (.*)$", made[page], re.MULTILINE)[1:] == reports


@pytest.mark.full
def test_plots_are_made_of_the_documents(made):
    plots = {path: text for path, text in made.items() if path.suffix == ".svg"}
    assert len(plots) == 6 and sum(map(len, plots.values())) < SMALL
    for path, text in plots.items():
        there = path.read_text(encoding="utf-8")
        assert texts(there) == texts(text) and "NVIDIA" in " ".join(filter(None, texts(there)))
        if f"Matplotlib v{matplotlib.__version__}," in there:  # others place things elsewhere
            assert there == text


@pytest.mark.full
def test_a_second_run_draws_the_same(tool, made):
    _, outcome = tool.read_studies(STORED)["dft"]
    assert tool.plot(outcome) == made[DOCS / "plots/studies/dft.svg"]


def test_only_what_is_another_is_written(tool, tmp_path, monkeypatch, capsys):
    texts = {tmp_path / name: name for name in ("same.md", "other.svg", "new/missing.svg")}
    for path in list(texts)[:2]:
        path.write_text("same.md", encoding="utf-8")
    monkeypatch.setitem(tool.main.__globals__, "made", lambda docs: texts.items())
    assert tool.main(tmp_path) == 0
    assert capsys.readouterr().out == "written: other.svg\nwritten: new/missing.svg\n"
    assert {path: path.read_text(encoding="utf-8") for path in texts} == texts


def changed(tmp_path, name, change):
    content = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    change(content)
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_failures_gaps_and_single_runs_are_named(tool, tmp_path):
    def change(content):
        rows = [row for row in content["results"] if row["n"] != 2048]
        rows[0].update(ok=False, status="correctness", reason="wrong")
        rows[3]["total_ms"] = {"min": 1500.0, "median": 1500.0, "max": 1500.0, "runs": 1}
        content.update(results=rows, stopped="it was interrupted", notes=["n=512: left out"])

    changed(tmp_path, "dft", change)
    text = tool.page(tool.read_studies(tmp_path))
    assert "failed: correctness" in text and "1,500\\*" in text and "n=512: left out" in text
    assert (
        "**This study is not complete.**\nIt was interrupted.\nNot measured: dft at n=2048" in text
    )


def test_other_documents_are_refused(tmp_path):
    for damage in ({"study": "none"}, {"command": "bench"}, {"scale": "huge"}, {"device": {}},
                   {"machine": {"colour": 1}}):  # fmt: skip
        path = changed(tmp_path, "dft", lambda content, damage=damage: content.update(damage))
        with pytest.raises(InvalidProblem, match=r"no document of a study|damaged"):
            stored_outcome(read_results(path))
