"""A lint of words: `python -m building.words [FILE ...]` lists sentences without a noun, and names without a role.

Comments, docstrings, messages, names and pages name their nouns: a pronoun in the place of one ("what", "who", "that of") sends the reader
looking for it. Things have no will. The field has a word for most things. A name says the role of a value, not how the value came about.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PROSE = {
    r"what(?:ever)?": "name the noun: the result, the operand, the option ...",
    r"who(?:m|ever)?": "name the caller, the user, the thread",
    r"(?:no|some|any|every)body|(?:some|any|every)one|no one": "name the caller, the user, the thread",
    r"(?:that|those) of": "repeat the noun",
    r"wants?|wanted|knows?|tells?|told": "a thing has no will: it reads, takes, holds, returns, names",
    r"says? whether": "return True if",
    r"fold(?:s|ed|ing)?": "reduction, reduce",
}
NAMES = r"found|wanted|given|made|kept|taken|held|done|asked"
EXCEPTIONS = {      # files, and a part of the line that is excepted there
    r"building/words\.py": r"",
    r"CHANGELOG\.md": r"",                    # its entries are in the words of their time
    r"docs/(promises|benchmark)\.md": r"",    # written by commands
    r"(cygrad|tests)/.*": r"\bwant |wanted to use|(?:than|as) that of the (?:original|input)"       # in torch's messages
                            r"|file\.tell\(\)"
                            r"|nn_functional_fold|\bfold\(",
}
CODE, PAGES = (".py", ".pyx", ".pxd", ".pyi", ".h"), (".md",)
STRING = re.compile(r'"(?:\\.|[^"\\])*"|' r"'(?:\\.|[^'\\])*'")


class Line(NamedTuple):
    number: int
    text: str
    is_prose: bool


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the prose and the code of a file, line by line: comments, docstrings, texts and names; of a page all but examples of code."""
    inside, is_example = False, False
    for number, text in enumerate(path.read_text().splitlines(), 1):
        if path.suffix in PAGES:
            if text.startswith("```"):
                is_example = not is_example and text != "```"       # without a language it is a drawing
            else:
                yield Line(number, re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>", "", text), not is_example)
        elif path.suffix == ".h":
            before, start, comment = ("", "", text) if inside else text.partition("/*")
            inside = (inside or bool(start)) and "*/" not in comment
            yield from (Line(number, before, False), Line(number, comment, True))
        elif inside or re.match(r'\s*r?"""', text):
            inside ^= text.count('"""') % 2 == 1
            yield Line(number, re.sub(r"`[^`]*`", "", text), not re.match(r"\s*(?:>>>|\.\.\.)", text))
        else:
            code, _, comment = STRING.sub('""', text).partition("#")
            yield from (Line(number, code, False), Line(number, re.sub(r"`[^`]*`", "", comment), True))
            yield Line(number, " ".join(STRING.findall(text)), True)


def problems(name: str) -> Iterator[str]:
    """Yield a sentence for each word that a file should not have."""
    for number, text, is_prose in lines_of(ROOT / name):
        if any(re.fullmatch(file, name) and re.search(part, text) for file, part in EXCEPTIONS.items()):
            continue
        for pattern, advice in PROSE.items():
            words = rf"\b(?:{pattern})\b" if is_prose else rf"(?<![A-Za-z])(?:{pattern.replace(' ', '_')})(?![A-Za-z])"
            for match in re.finditer(words, text, re.IGNORECASE):
                yield f"{name}:{number}: {match[0]!r}: {advice}"
        if not is_prose and not name.endswith(PAGES):
            for match in re.finditer(rf"\b(?:{NAMES})\b", text):
                yield f"{name}:{number}: the name {match[0]!r}: say the role of the value"


def files() -> list[str]:
    """Return the files of the project that are written by hand."""
    listed = subprocess.run(["git", "ls-files", *(f"*{suffix}" for suffix in (*CODE, *PAGES))], cwd=ROOT, capture_output=True, text=True,
                            check=True).stdout.split()
    return [name for name in listed if not name.startswith("docs/api/")]


def main(names: list[str]) -> int:
    lines = [line for name in names or files() for line in problems(name)]
    print(*lines, sep="\n")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
