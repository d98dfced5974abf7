import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def people(tmp_path, grouped_blobs):
    X, codes = grouped_blobs()
    frame = pd.DataFrame({"age": X[:, 0], "income": X[:, 1], "name": "x", "sex": np.array(["f", "m"])[codes]})
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    return path
