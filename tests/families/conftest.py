"""Modules beside a family's tests are imported by their names."""

import sys
from pathlib import Path

sys.path += [str(folder) for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir()]
