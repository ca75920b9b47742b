"""Somebody who is no part of a run: reads "ADDRESS PORT" lines and knocks there, again and
again, in every wrong way at once. Says so when it has knocked 150 times, and, when its input
ends, how many connections it had."""

import selectors
import socket
import struct
import sys
import threading

# Network/Greeting.h: version, from, to, kind, number, nonce.
VERSION = int.from_bytes(b"acclane2", "little")
NUMBERS = [(0, 1, 2, 0), (10**9, 1, 2, 0), (-5, 1, 2, 1), (2, 0, 2, 0), (2**63 - 1, 0, 1, 2**32 - 1)]
GREETINGS = [struct.pack("<QqqII32s", VERSION, source, to, kind, number, b"n" * 32)
             for source, to, kind, number in NUMBERS]
SAYS = [b"", GREETINGS[0][:1], GREETINGS[0][:23], GREETINGS[0][:63], *GREETINGS,
        GREETINGS[0] + b"p" * 32, b"\0" * 64, b"\xff" * 4096, b"GET / HTTP/1.1\r\n\r\n"]
count = 0


def knock(address, port):
    """Keeps 200 connections there, each until it is closed; sends back what it hears."""
    global count
    alive = selectors.DefaultSelector()
    number = 0
    while True:
        while number < 200:
            one = socket.socket()
            try:
                one.connect((address, port))
                one.setblocking(False)
                one.send(SAYS[number % len(SAYS)])
            except OSError:
                one.close()
                return
            alive.register(one, selectors.EVENT_READ)
            number += 1
            count += 1
            if count == 150:
                print("knocks", flush=True)
        for key, _ in alive.select(1):
            try:
                heard = key.fileobj.recv(4096)
                if heard:
                    key.fileobj.send(heard)
            except OSError:
                heard = b""
            if not heard:
                alive.unregister(key.fileobj)
                key.fileobj.close()
                number -= 1


def main():
    for line in sys.stdin:
        address, port = line.split()
        threading.Thread(target=knock, args=(address, int(port)), daemon=True).start()
    print(count)


main()
