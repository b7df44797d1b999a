"""The README's Python runs as it stands."""

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_code_blocks_run():
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) >= 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["solution"].values.shape == (2000,)


def test_nothing_is_left_to_fill_in():
    assert not re.search(r"^[A-Z]{5,}$|\bTODO\b", README, flags=re.MULTILINE)
