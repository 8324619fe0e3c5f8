"""One TCP stream from one node to another: what the wire carries, and how long a byte takes.

    wire_tcp.py serve PORT READY         prints bytes per second, without the first FREE bytes
    wire_tcp.py send HOST PORT BYTES     prints the latency in seconds: half a round trip, median
"""
import socket
import sys
import time

ROUNDS = 101
FREE = 1 << 20  # bytes that buffers and a full token bucket let through at once


def serve(port, ready):
    listener = socket.create_server(("", port))
    listener.settimeout(60)
    open(ready, "w").close()
    peer = listener.accept()[0]
    peer.settimeout(60)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(ROUNDS):
        peer.sendall(peer.recv(1))
    n, begun = 0, None
    while data := peer.recv(1 << 18):
        n += len(data)
        if begun is None and n >= FREE:
            n, begun = 0, time.monotonic()
    print(n / (time.monotonic() - begun))


def send(host, port, n):
    peer = socket.create_connection((host, port), timeout=60)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    trips = []
    for _ in range(ROUNDS):
        begun = time.monotonic()
        peer.sendall(b"x")
        peer.recv(1)
        trips.append(time.monotonic() - begun)
    block = bytes(1 << 18)
    for _ in range((n + FREE) // len(block)):
        peer.sendall(block)
    peer.close()
    print(sorted(trips)[ROUNDS // 2] / 2)


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]), sys.argv[3])
else:
    send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
