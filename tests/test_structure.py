"""Rules of the source tree: imports point downward, docstrings are short."""

import ast
import subprocess
import sys
from pathlib import Path


def test_imports_point_downward(root):
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_docstrings_have_at_most_four_lines_or_the_sections_of_numpydoc(root):
    """Those of metrics get their sections from the decorator `@metric`."""
    long = []
    for file in sorted((root / "src/fairclust").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                doc = ast.get_docstring(node) or ""
                is_metric = any(ast.unparse(one).startswith("metric(") for one in node.decorator_list)
                if sum(map(bool, doc.split("\n"))) > 4 and "\n---" not in doc and not is_metric:
                    long.append(f"{file.relative_to(root)}: {node.name}")
    assert not long, "shorten these docstrings, or give them the sections of numpydoc:\n" + "\n".join(long)
