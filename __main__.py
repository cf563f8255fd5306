"""``python -m turnlock`` is the ``turnlock`` command."""

from turnlock.cli.main import main

if __name__ == "__main__":
    main()
