"""A service manager's socket: notify_socket.py PATH prints each message as a line, with commas between its lines."""
import socket
import sys

with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
    manager.bind(sys.argv[1])
    print("bound", flush=True)
    while True:
        print(manager.recv(4096).decode().replace("\n", ","), flush=True)
