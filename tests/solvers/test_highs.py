import os
import subprocess
import sys
import warnings

import numpy as np
from scipy import optimize

from fairclust.solvers.highs import _silent, linprog


def test_highs_prints_nothing_and_later_output_is_printed(capfd):
    def noisy(c, **options):
        os.write(1, b"from below\n")
        return optimize.linprog(c, **options)

    print("before")
    done = _silent(noisy)([1.0, 2.0], bounds=[(3, 4), (5, 6)])
    print("after")
    assert done.fun == 13
    assert capfd.readouterr().out == "before\nafter\n"


def test_lines_of_the_c_library_are_not_printed_later():
    code = (
        "import ctypes; from fairclust.solvers.highs import _silent\n"
        "_silent(lambda: ctypes.CDLL(None).printf(b'late\\n'))()\n"
        "print('end')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "end\n"


def test_errors_are_raised_and_later_output_is_printed(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = linprog([1.0], A_ub=[[1.0]], b_ub=[-1.0])
    assert not done.success
    try:
        linprog(np.ones((2, 2)))
    except ValueError:
        print("here")
    assert capfd.readouterr().out == "here\n"
