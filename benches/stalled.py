#!/usr/bin/env python3
"""What observers that never read cost: 200 of them attach to 8 MiB of text, with small receive buffers of their own.

    cargo build --release && python3 benches/stalled.py target/release/rejoin

Linux only: the kernel's figure is the growth of its TCP memory, /proc/net/sockstat.
"""

import json
import re
import socket
import subprocess
import sys
import time

OBSERVERS = 200
SETTLE_S = 5


def kernel_bytes():
    pages = re.search(r"mem (\d+)", open("/proc/net/sockstat").read())[1]
    return int(pages) * 4096


def process_bytes(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) * 1024


def post(port, path, body, kind):
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return json.loads(answer.split(b"\r\n\r\n", 1)[1])


def write_run(port):
    run = post(port, "/chats/c/runs", b"{}", "application/json")["run_id"]
    delta = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x" * 1024}
    events = [
        {"type": "RUN_STARTED", "threadId": "c", "runId": "r"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        *[delta] * 8192,
    ]
    post(port, f"/runs/{run}/events", b"\n".join(json.dumps(event).encode() for event in events), "application/x-ndjson")


def attach(port):
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", port))
    connection.sendall(b"GET /chat/live?chat_id=c HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return connection


def main():
    command = [sys.argv[1], "serve", "--listen", "127.0.0.1:0", "--db", ":memory:"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+)$", server.stdout.readline().strip())[1])
        write_run(port)
        kernel, process = kernel_bytes(), process_bytes(server.pid)
        stalled = [attach(port) for _ in range(OBSERVERS)]
        time.sleep(SETTLE_S)
        kernel, process = kernel_bytes() - kernel, process_bytes(server.pid) - process
        print(f"each of {len(stalled)}: {kernel / OBSERVERS / 1024:.0f} KiB of the kernel, {process / OBSERVERS / 1024:.1f} KiB of the process")
    finally:
        server.kill()


main()
