import sys
from textwrap import dedent

import pytest

from fairclust import methods
from fairclust.metrics.table import METRICS
from fairclust.pipeline import fingerprint
from fairclust.pipeline.fingerprint import ClassNotFound, class_fingerprint, class_parameters
from toys import forget_code


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write a package with two methods, and return a function that edits a file and gives both fingerprints."""
    folder = tmp_path / "mypackage"
    folder.mkdir()
    files = {
        "__init__": "",
        "kernel": "def add(a, b):\n    return a + b\n",
        "one": "from mypackage.kernel import add\n\n\nclass One:\n    three = add(1, 2)\n",
        "two": "from . import base\n\n\nclass Two(base.Base):\n    pass\n",
        "base": "class Base:\n    pass\n",
    }
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    def look(name=None, text=None):
        if name:
            (folder / f"{name}.py").write_text(dedent(text))
        forget_code()
        return class_fingerprint("mypackage.one.One"), class_fingerprint("mypackage.two.Two")

    yield look
    forget_code()


def test_a_relative_import_is_followed_and_what_a_class_does_not_reach_does_not_count(package):
    one, two = package()
    changed = package("base", "class Base:\n    x = 1\n")
    assert changed[0] == one and changed[1] != two


@pytest.mark.parametrize(
    "text",
    [
        '"""Adding."""\n\n\ndef add(a, b):\n    """Sum."""\n    # as in school\n    return (a\n        + b)\n',
        "def add(a: int, b: int) -> int:\n    return a + b\n",
    ],
)
def test_comments_docstrings_layout_and_annotations_do_not_count(package, text):
    before = package()
    assert package("kernel", text) == before


def test_a_fingerprint_imports_nothing(package):
    package()
    package("kernel", "1 / 0\n")
    class_parameters("mypackage.one.One")
    assert not [name for name in sys.modules if name.startswith("mypackage")]


@pytest.mark.parametrize(
    "path, message",
    [
        ("mypackage.one.Uno", "does not define 'Uno'; it defines One"),
        ("mypackage.nowhere.One", "there is no Python module 'mypackage.nowhere'"),
        ("nopackage.One", "there is no Python module 'nopackage'"),
        ("mypackage.broken.One", r"broken\.py, line 1: "),
    ],
)
def test_a_wrong_path_or_a_syntax_error_says_what_is_wrong(package, path, message):
    package("broken", "class One\n")
    with pytest.raises(ClassNotFound, match=message):
        class_fingerprint(path)


def test_a_class_has_one_fingerprint_by_all_its_names():
    names = ("fairclust", "fairclust.methods", "fairclust.methods.kmeans")
    assert len({class_fingerprint(f"{name}.KMeans") for name in names}) == 1
    assert "n_init" in class_parameters("fairclust.KMeans")


def test_parameters_are_read_from_the_source_also_inherited_ones(package):
    package("base", "class Base:\n    def __init__(self, n_clusters=2, *, lam=1):\n        pass\n")
    package("two", "from mypackage.base import Base\n\n\nclass Two(Base):\n    pass\n")
    assert class_parameters("mypackage.two.Two") == {"n_clusters", "lam"}
    package("base", "class Base:\n    def __init__(self, **anything):\n        pass\n")
    assert class_parameters("mypackage.two.Two") is None
    assert class_parameters("mypackage.one.One") is None


@pytest.mark.parametrize("name", methods.__all__)
def test_parameters_of_every_method_are_read_from_the_source(name):
    cls = getattr(methods, name)
    assert class_parameters(f"{cls.__module__}.{name}") == set(cls().get_params())


@pytest.mark.parametrize(
    "text",
    [
        "from mypackage.more import add\n",
        "from mypackage import more\n\n\ndef add(a, b):\n    return more.add(a, b)\n",
        "import mypackage.more\n\n\ndef add(a, b):\n    return mypackage.more.add(a, b)\n",
        "def add(a, b):\n    from mypackage.more import add\n\n    return add(a, b)\n",
        "import mypackage.more as here\n\n\ndef add(a, b):\n    return getattr(here, 'add')(a, b)\n",
        "from mypackage.more import _plus\n\nSUM = [_plus]\n\n\ndef add(a, b):\n    return SUM[0](a, b)\n",
        "try:\n    from mypackage.more import add\nexcept ImportError:\n    add = None\n",
        "try:\n    from mypackage.more import add\nexcept ImportError:\n    from mypackage.one import add\n",
    ],
)
def test_every_way_to_use_another_module_is_followed(package, text):
    more = (
        "ONE = 1\n\n\ndef _plus(a, b):\n    return a + b * ONE\n\n\ndef add(a, b):\n    return _plus(a, b)\n"
    )
    package("more", more)
    before = package("kernel", text)
    assert package("more", more.replace("ONE = 1", "ONE = 2")) == (package()[0], before[1])
    assert package()[0] != before[0]
    assert package("more", "print()\n" + more)[0] != before[0]


def test_a_scorer_is_the_code_of_the_modules_of_its_metrics():
    home = METRICS["balance"].function.__module__
    closure = fingerprint._closure("fairclust.metrics.table", home)
    assert home in closure and METRICS["sse"].function.__module__ not in closure


@pytest.mark.parametrize(
    "name", sorted(set(methods.__all__) - {"FairSpectralClustering", "SpectralClustering"})
)
def test_everything_that_a_fit_calls_counts(name, grouped_blobs):
    """Record the modules that run in a fit: each must be in the closure of the method's code."""
    cls = getattr(methods, name)
    X, codes = grouped_blobs(n_groups=2)
    called = set()

    def record(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("fairclust."):
            called.add(module)

    sys.setprofile(record)
    try:
        cls(2, random_state=0).fit(X, sensitive_features=codes)
    finally:
        sys.setprofile(None)
    # The packages find their members when these are first used, and the kernels may be compiled here.
    called -= {"fairclust.lazy", "fairclust.kernels"}
    assert called <= set(fingerprint._closure(cls.__module__))
