"""`python -m bertsmith` is the command line."""

from bertsmith.cli.main import run

if __name__ == "__main__":
    run()
