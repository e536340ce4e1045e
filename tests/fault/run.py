#!/usr/bin/python3
"""Runs the fault tests against the programs in $MQ_BUILD (built with --enable-failpoints) and speaks TAP.

usage: run.py [--soak] [--report=FILE] [REGEX]
--soak runs the long versions, --report writes a table: fault, times tried, what was lost, recovery."""
import importlib
import os
import re
import sys
import time
import traceback
import unittest

MODULES = ("failpoints", "kills", "poison", "powerloss", "memory", "disk", "clock", "races")


def run_one(number, name, test, soak, report):
    began = time.monotonic()
    try:
        report += test(soak) or []
        verdict, note = "ok", ""
    except Exception as e:
        if isinstance(e, unittest.SkipTest):
            verdict, note = "ok", f" # skip {e}"
        else:
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end="")
            verdict, note = "not ok", ""
    print(f"{verdict} {number} {name}{note}", flush=True)
    print(f"# {time.monotonic() - began:.1f} s", flush=True)
    return verdict == "ok"


def main():
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    wanted = re.compile("|".join(a for a in sys.argv[1:] if not a.startswith("--")) or ".")
    soak = "--soak" in options
    if not os.access(os.environ.get("MQ_BUILD", "") + "/mandelqd", os.X_OK):
        sys.exit("run.py: MQ_BUILD names no build")
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    tests = []
    for name in MODULES:
        module = importlib.import_module(name)
        tests += [(title, test) for title, test in module.TESTS if wanted.search(f"{name}: {title}")]
    print(f"1..{len(tests)}", flush=True)
    report, good = [], True
    for number, (title, test) in enumerate(tests, 1):
        good &= run_one(number, title, test, soak, report)
    for option in options:
        if option.startswith("--report="):
            with open(option[9:], "w") as f:
                f.write("fault | times tried | lost | recovery\n")
                f.writelines(faults.line() + "\n" for faults in report)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
