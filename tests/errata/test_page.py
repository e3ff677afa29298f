"""docs/errata.md itself: every entry names a test, and every test is named by an entry."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "errata.md"


def test_every_entry_names_a_test_that_exists():
    text = PAGE.read_text(encoding="utf-8")
    tests = "\n".join(
        path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py") if path.name != "test_page.py"
    )
    there = set(re.findall(r"^def (test_\w+)", tests, flags=re.MULTILINE))
    assert set(re.findall(r"`(test_\w+)`", text)) == there
    entries = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    assert len(entries) >= 35
    for entry in entries:
        assert re.search(r"`test_\w+`", entry), entry.splitlines()[0]
