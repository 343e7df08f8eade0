"""The one exception that users are meant to see."""


class UserError(Exception):
    """Something the user can put right.

    The message is one line: what is wrong, where (file, line, value), and what to do.
    The command line prints it without a traceback and exits with status 2.
    """
