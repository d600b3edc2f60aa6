"""The routines of tools/array_names.txt, and the form in which other libraries' signatures are recorded."""
import collections
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A name as it is listed -> where NumPy and CuPy keep it, when that is another place.
PLACES = {
    "polynomial.as_series": "polynomial.polyutils.as_series",
    "polynomial.polycompanion": "polynomial.polynomial.polycompanion",
    "polynomial.polyvalfromroots": "polynomial.polynomial.polyvalfromroots",
    "polynomial.polyvander": "polynomial.polynomial.polyvander",
    "polynomial.trimcoef": "polynomial.polyutils.trimcoef",
    "polynomial.trimseq": "polynomial.polyutils.trimseq",
}


def by_tier(file="array_names.txt"):
    """{tier: {subject: [(name, reason for its absence or "")]}} of a file in tools/."""
    tiers = collections.defaultdict(dict)
    for line in (ROOT / "tools" / file).read_text().splitlines():
        if line.startswith("["):
            tier, subject = line.strip("[]").split(" ", 1)
            names = tiers[tier][subject] = []
        elif ": " in line and not line.startswith("#"):
            names.append(tuple(line.split(": ", 1)))
        elif not line.startswith("#"):
            names += [(name, "") for name in line.split()]
    return tiers


def all_names():
    """Every name, sorted."""
    return sorted({name for subjects in by_tier().values() for names in subjects.values() for name, _ in names})


def write_signatures(file, head, rows):
    """Writes `head` and a line for each (name, must, may): the routine, what must be given, and after
    "|" what may be."""
    lines = [f"{name}({', '.join(must)}{' | ' if may else ''}{', '.join(may)})\n" for name, must, may in rows]
    (ROOT / "tools" / file).write_text(head + "".join(lines))


def read_signatures(file):
    """[(name, must, may)] as write_signatures wrote them."""
    for line in (ROOT / "tools" / file).read_text().splitlines():
        if line.startswith("#"):
            continue
        name, _, parameters = line.rstrip(")").partition("(")
        yield (name, *([p for p in part.split(", ") if p] for part in _halves(parameters)))


def _halves(parameters):
    must, _, may = parameters.partition("| ")
    return must.strip(), may
