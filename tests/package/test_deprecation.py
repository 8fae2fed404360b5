"""Deprecated names warn at the caller's line, stay for two releases, and are gone in the release that they name."""

import importlib

import pytest

import cygrad
import public
from cygrad._deprecation import deprecated, number

exports = importlib.import_module("cygrad.operators._written.exports")


@deprecated(since="1.1", removal="1.3", instead="cygrad.square")
def squared(x, power=2):
    """Square."""
    return x**power


def overdue(functions, version):
    """Return the functions whose release has come."""
    return [function for function in functions if hasattr(function, "removal") and number(function.removal) <= number(version)]


def test_a_call_warns_at_the_callers_line():
    with pytest.warns(DeprecationWarning, match="squared is deprecated since 1.1 and goes in 1.3: use cygrad.square") as shown:
        assert squared(3) == 9 and squared(2, power=3) == 8
    assert {warning.filename for warning in shown} == {__file__} and len(shown) == 2
    assert squared.__doc__ == "Square." and squared.__name__ == "squared"


def test_a_name_stays_for_two_releases():
    for since, removal in ("0.2", "0.3"), ("1.9", "1.10"), ("1.2.1", "1.2"):
        with pytest.raises(ValueError, match="stays until"):
            deprecated(since, removal, "something else")
    deprecated("0.9", "1.0", "something else")


def test_no_name_is_past_its_release():
    assert overdue([squared], "1.3.0.dev0") == overdue([squared], "2.0") == [squared] and overdue([squared], "1.2.9") == []
    assert overdue([export.thing for export in exports.exports()], cygrad.__version__) == []


@pytest.mark.skipif(not (public.ROOT / "CHANGELOG.md").exists(), reason="needs the sources")
def test_notes_of_a_release_are_its_section():
    notes = importlib.import_module("building.notes").notes
    changelog = "# Changelog\n\n## 0.3 (not released yet)\n\nSoon.\n\n## 0.2.1\n\n- A repair.\n\n## 0.2\n\n**New**\n- A name.\n"
    assert notes(changelog, "v0.2.0") == "**New**\n- A name.\n" and notes(changelog, "0.2.1") == "- A repair.\n"
    for version, reason in ("v0.3.0", "not released yet"), ("0.4", "no such heading"):
        with pytest.raises(ValueError, match=reason):
            notes(changelog, version)
    text = (public.ROOT / "CHANGELOG.md").read_text()
    assert "**" in notes(text.replace(" (not released yet)", "", 1), cygrad.__version__.partition(".dev")[0])
