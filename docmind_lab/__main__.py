"""`python -m docmind_lab`: the command line."""

from docmind_lab.views.cli import main

if __name__ == "__main__":
    main()
