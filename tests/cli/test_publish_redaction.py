"""What `fairclust publish` copies names no folder of the machine."""

import json

import pandas as pd
import pyarrow as pa

from fairclust.cli.publish import copy_redacted
from fairclust.pipeline.scores import read_arrow, write_arrow


def test_tables_and_scores_lose_the_paths_of_the_machine(tmp_path):
    table, scores = tmp_path / "reproduction.md", tmp_path / "scores.parquet"
    table.write_text("| Remark |\n| --- |\n| no /home/somebody/f.csv|\n| +3.0 % / 2 |\n")
    params = json.dumps({"path": "~/of somebody/c.csv", "url": "https://example.org/d/e.csv"})
    reason = "ValueError: 'file:///home/some body/a.csv', /home/somebody/b.csv: 3/4 is no float"
    given = pd.DataFrame(
        {"params": ["{}", params, None], "reason": [reason, None, ""], "sse": [1.5, None, 0.1]}
    )
    given = given.assign(n=pd.array([1, None, 2], "Int64"))
    types = {"params": pa.string(), "reason": pa.string(), "sse": pa.float64(), "n": pa.int64()}
    table_of_scores = pa.Table.from_pandas(given, pa.schema(types), preserve_index=False)
    write_arrow(scores, table_of_scores)
    for path in (table, scores):
        copy_redacted(path, tmp_path / "out" / path.name)
    assert (tmp_path / "out/reproduction.md").read_text().endswith("| no f.csv|\n| +3.0 % / 2 |\n")
    found = read_arrow(tmp_path / "out/scores.parquet")
    assert found.schema == table_of_scores.schema
    assert found["reason"].to_pylist() == ["ValueError: 'a.csv', b.csv: 3/4 is no float", None, ""]
    assert json.loads(found["params"][1].as_py()) == {"path": "c.csv", "url": "https://example.org/d/e.csv"}
    others = ["sse", "n"]
    assert found.select(others) == table_of_scores.select(others)
