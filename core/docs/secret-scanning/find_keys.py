"""Prints which lines of standard input contain a Callkey API key, but never the key: git log -p | python3 find_keys.py"""

import re
import sys
from zlib import crc32

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def is_key(text):
    """Return whether the last 6 characters are the CRC-32 of the others, in base62 digits."""
    rest = crc32(text[:-6].encode())
    digits = ""
    for _ in range(6):
        rest, digit = divmod(rest, 62)
        digits = ALPHABET[digit] + digits
    return text[-6:] == digits


found = False
for number, line in enumerate(sys.stdin.buffer, 1):
    # Read UTF-16, which Windows PowerShell writes with >, as ASCII with additional zero bytes.
    line = line.replace(b"\0", b"")
    for text in re.findall(r"svc_sk_live_[0-9A-Za-z]{49}(?![0-9A-Za-z])", line.decode(errors="replace")):
        if is_key(text):
            found = True
            print(f"line {number}: an API key")
sys.exit(1 if found else 0)
