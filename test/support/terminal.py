"""Runs a program on a terminal: terminal.py COLUMNS LINES PROGRAM [ARGUMENT ...]

Standard input goes to the terminal as keys (Ctrl-C is "\\x03"), what the terminal gets comes on standard output. Ends
with the program's exit status.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios


def main() -> int:
    columns, lines = int(sys.argv[1]), int(sys.argv[2])
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        os.execv(sys.argv[3], sys.argv[3:])
    sources = [terminal, sys.stdin.fileno()]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if sys.stdin.fileno() in ready:
            keys = os.read(sys.stdin.fileno(), 4096)
            if keys:
                os.write(terminal, keys)
            else:
                sources = [terminal]
        if terminal in ready:
            try:
                shown = os.read(terminal, 4096)
            except OSError:  # the program has ended
                break
            if not shown:
                break
            os.write(sys.stdout.fileno(), shown)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


sys.exit(main())
