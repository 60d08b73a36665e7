"""Small audio files with metadata, made without an encoder."""

import io
import math
import struct
import wave

from mutagen.ogg import OggPage

SECRET = b"Recorded by Ann Example"


def wav(seconds=0.5, pitch=440.0):
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        samples = (int(9000 * math.sin(2 * math.pi * pitch * n / 8000)) for n in range(int(8000 * seconds)))
        file.writeframes(b"".join(struct.pack("<h", each) for each in samples))
    content = buffer.getvalue()
    info = b"INFOIART" + struct.pack("<I", len(SECRET) + 1) + SECRET + b"\0"
    content += b"LIST" + struct.pack("<I", len(info)) + info
    return content[:4] + struct.pack("<I", len(content) - 8) + content[8:]


def mp3(frames=40):
    text = b"\0" + SECRET
    frame = b"TPE1" + struct.pack(">I", len(text)) + b"\0\0" + text
    tag = b"ID3\x03\0\0" + bytes([0, 0, 0, len(frame)]) + frame
    sound = b"\xff\xfb\x90\x64" + bytes(413)  # 128 kbit/s at 44.1 kHz: 417 bytes
    return tag + sound * frames + b"TAG" + SECRET.ljust(125, b"\0")


def flac():
    packed = (44100 << 44) | (0 << 41) | (15 << 36) | 44100  # rate, channels − 1, bits − 1, samples: one second
    info = struct.pack(">HH", 4096, 4096) + bytes(6) + packed.to_bytes(8, "big") + bytes(16)
    comment = (
        struct.pack("<I", 4) + b"test" + struct.pack("<I", 1) + struct.pack("<I", 7 + len(SECRET)) + b"ARTIST=" + SECRET
    )
    blocks = [(0, info), (4, comment), (2, b"appl" + SECRET)]
    head = b"".join(
        bytes([code | (0x80 if place == len(blocks) - 1 else 0)]) + len(body).to_bytes(3, "big") + body
        for place, (code, body) in enumerate(blocks)
    )
    return b"fLaC" + head + b"\xff\xf8" + bytes(100)


def ogg():
    vector = struct.pack("<I", 7 + len(SECRET)) + b"ARTIST=" + SECRET
    packets = [
        b"\x01vorbis" + struct.pack("<IBIiiiBB", 0, 1, 8000, 0, 32000, 0, 0xB8, 1),
        b"\x03vorbis" + struct.pack("<I", 4) + b"test" + struct.pack("<I", 1) + vector + b"\x01",
        b"\x05vorbis" + bytes(20),
        bytes(30),
    ]
    pages = []
    for number, packet in enumerate(packets):
        page = OggPage()
        page.packets, page.sequence, page.serial = [packet], number, 1
        page.position = 4000 if number == 3 else 0
        page.first, page.last = number == 0, number == 3
        pages.append(page.write())
    return b"".join(pages)


def _atom(name, *parts):
    body = b"".join(parts)
    return struct.pack(">I", len(body) + 8) + name + body


def m4a():
    mdhd = _atom(b"mdhd", bytes(12) + struct.pack(">II", 8000, 8000) + bytes(4))
    hdlr = _atom(b"hdlr", bytes(8) + b"soun" + bytes(13))
    mp4a = _atom(b"mp4a", bytes(8) + bytes(8) + struct.pack(">HHHHI", 2, 16, 0, 0, 8000 << 16), _atom(b"free"))
    stsd = _atom(b"stsd", bytes(4) + struct.pack(">I", 1) + mp4a)
    stco = _atom(b"stco", bytes(4) + struct.pack(">I", 0))
    track = _atom(b"trak", _atom(b"mdia", mdhd, hdlr, _atom(b"minf", _atom(b"stbl", stsd, stco))))
    data = _atom(b"data", struct.pack(">II", 1, 0) + SECRET)
    ilst = _atom(b"ilst", _atom(b"\xa9ART", data))
    meta = _atom(b"meta", bytes(4), _atom(b"hdlr", bytes(8) + b"mdirappl" + bytes(9)), ilst)
    return _atom(b"ftyp", b"M4A \0\0\0\0") + _atom(b"moov", track, _atom(b"udta", meta)) + _atom(b"mdat", bytes(64))


FILES = {"audio/wav": wav, "audio/mpeg": mp3, "audio/flac": flac, "audio/ogg": ogg, "audio/mp4": m4a}
