from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_layers_of_the_design_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert found.returncode == 0, found.stdout + found.stderr
    assert "0 broken" in found.stdout


def test_the_contract_needs_the_standard_library_only() -> None:
    program = (
        "import sys; before = set(sys.modules); import runcert_contract; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names) - {'runcert_contract'}))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert found.stdout.strip() == "[]"
