"""Which layer of a model knows what: `python run_probes.py --model NAME`."""

import sys

from probes.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
