"""Small programs whose solutions are known, and the one module that calls HiGHS."""

import numpy as np
import pytest

from fairclust.solvers.programs import Program, table_sums


def transport(whole):
    """State the cheapest table of whole numbers with given sums of its rows and of its columns."""
    program = Program()
    program.variables("table", np.array([[1.0, 2.0, 3.0], [4.0, 1.0, 2.0]]), whole=whole)
    program.variables("spare", np.array([10.0]), 0.0, 2.0)
    of_rows, of_columns = table_sums((2, 3))
    program.rows([3, 4], [3, 4], table=of_rows)
    program.rows(-np.inf, [2, 2, 3], table=of_columns, spare=-np.eye(3)[:, :1])
    return program


@pytest.mark.parametrize("whole", [False, True])
def test_transport(whole):
    program = transport(whole)
    assert program.n_entries == 13
    found = program.solve()
    assert found.is_optimal
    np.testing.assert_allclose(found.values["table"], [[2, 0, 1], [0, 2, 2]], atol=1e-9)
    np.testing.assert_allclose(found.values["spare"], [0], atol=1e-9)
    if whole:
        assert found.lower_bound == pytest.approx(11)
    else:
        assert found.reduced_costs["table"].shape == (2, 3)
        assert len(found.duals) == 2


def test_rows_with_two_sides():
    program = Program()
    program.variables("x", np.array([1.0, -1.0]), -5.0, 5.0)
    program.rows([-1.0, 0.0], [2.0, 3.0], x=np.eye(2))
    np.testing.assert_allclose(program.solve().values["x"], [-1, 3])


@pytest.mark.parametrize("whole", [False, True])
def test_a_program_without_a_solution(whole):
    program = transport(whole)
    program.rows(9, np.inf, table=np.ones((1, 6)))
    assert program.solve() is None
    assert "infeasible" in program.message
