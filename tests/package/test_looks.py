"""The colour and the mark of a method, which are the same in every run."""

import yaml

from fairclust import methods
from fairclust.looks import look, looks_of


def test_every_method_of_the_catalogue_and_every_class_has_its_own_look(root):
    stated = {}
    for file in (root / "config/methods").glob("*.yaml"):
        stated |= {
            name: tuple(spec["look"]) for name, spec in yaml.safe_load(file.read_text())["methods"].items()
        }
    assert len({look(name, of) for name, of in stated.items()}) == len(stated)
    assert set(methods.LOOKS) == set(methods.__all__)
    assert len({look(name) for name in methods.__all__}) == len(methods.__all__)


def test_no_two_methods_of_a_run_look_the_same():
    own = ("vermilion", "square")
    names = ["stripes", "own", *(f"method {i}" for i in range(50))]
    found = looks_of(dict.fromkeys(names) | {"own": own})
    assert found["own"] == look("own", own) and found["stripes"] == look("stripes")
    assert look("stripes") != look("dots")
    assert len({look(name) for name in names}) < len(names) == len(set(found.values()))
