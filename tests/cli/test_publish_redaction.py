"""What `fairclust publish` copies names no folder of the machine."""

import pyarrow as pa

from fairclust.cli.publish import copy_redacted
from fairclust.pipeline.scores import read_arrow, write_arrow


def test_tables_and_scores_lose_the_paths_of_the_machine(tmp_path):
    table, scores = tmp_path / "reproduction.md", tmp_path / "scores.parquet"
    table.write_text("| no /home/somebody/f.csv|\n| +3.0 % / 2 |\n")
    columns = {
        "params": ["{}", '{"path": "~/of somebody/c.csv"}', None],
        "reason": ["in /home/somebody/b.csv", None, ""],
    }
    given = pa.table({**columns, "sse": [1.5, None, 0.1], "n": [1, None, 2]})
    write_arrow(scores, given)
    for path in (table, scores):
        copy_redacted(path, tmp_path / "out" / path.name)
    assert (tmp_path / "out/reproduction.md").read_text() == "| no f.csv|\n| +3.0 % / 2 |\n"
    found = read_arrow(tmp_path / "out/scores.parquet")
    assert found.schema == given.schema and found.select(["sse", "n"]) == given.select(["sse", "n"])
    assert found["reason"].to_pylist() == ["in b.csv", None, ""]
    assert found["params"].to_pylist() == ["{}", '{"path": "c.csv"}', None]
