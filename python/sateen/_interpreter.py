"""Refuses a subinterpreter: all interpreters of a process would share the native module's objects.

The package calls this first, before it loads anything else.
"""

from __future__ import annotations

import importlib


def refuse_subinterpreters() -> None:
    """Raises ``ImportError`` in all interpreters of the process but the main one."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # since CPython 3.13, and before
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        if interpreters.get_current() != interpreters.get_main():
            raise ImportError("sateen cannot be imported in a subinterpreter")
        return
