"""Read QR codes from pictures of them, as a phone does, apart from correcting errors: our pictures have none."""

import io

import numpy as np
from PIL import Image

_LEVELS = {0b01: "L", 0b00: "M", 0b11: "Q", 0b10: "H"}
_BLOCKS = {  # number of blocks of data, and bytes in each, where all have equally many (ISO/IEC 18004, table 9)
    (2, "M"): (1, 28),
    (3, "L"): (1, 55),
    (3, "M"): (1, 44),
    (4, "L"): (1, 80),
    (4, "M"): (2, 32),
    (4, "Q"): (2, 24),
    (5, "M"): (2, 43),
    (6, "M"): (4, 27),
}
_MASKS = [
    lambda row, column: (row + column) % 2,
    lambda row, column: row % 2 + 0 * column,
    lambda row, column: column % 3 + 0 * row,
    lambda row, column: (row + column) % 3,
    lambda row, column: (row // 2 + column // 3) % 2,
    lambda row, column: row * column % 2 + row * column % 3,
    lambda row, column: (row * column % 2 + row * column % 3) % 2,
    lambda row, column: ((row + column) % 2 + row * column % 3) % 2,
]


def read_qr(picture):
    """Return the text of the QR code in a picture, given as the bytes of a file."""
    dark = np.asarray(Image.open(io.BytesIO(picture)).convert("L")) < 128
    rows, columns = (np.flatnonzero(dark.any(axis=axis)) for axis in (1, 0))
    code = dark[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    finder = np.argmin(code[0])  # its upper edge is seven modules of one colour
    size = round(7 * code.shape[1] / finder)
    centres = ((np.arange(size) + 0.5) * code.shape[0] / size).astype(int)
    return _text(code[np.ix_(centres, centres)])


def _text(modules):
    size = len(modules)
    version = (size - 17) // 4
    kept = 0b101010000010010 >> 10 ^ int("".join(str(int(bit)) for bit in modules[8, :5]), 2)
    level, mask = _LEVELS[kept >> 3], _MASKS[kept & 0b111]
    row, column = np.indices(modules.shape)
    fixed = (row == 6) | (column == 6) | ((row < 9) & ((column < 9) | (column >= size - 8)))
    fixed |= (row >= size - 8) & (column < 9)
    fixed |= (abs(row - size + 7) <= 2) & (abs(column - size + 7) <= 2)  # the only alignment pattern up to version 6
    bits = modules ^ (mask(row, column) == 0)
    read = []
    rights = [*range(size - 1, 6, -2), *range(5, 0, -2)]
    for turn, right in enumerate(rights):
        for at in range(size - 1, -1, -1) if turn % 2 == 0 else range(size):
            read += [bits[at, each] for each in (right, right - 1) if not fixed[at, each]]
    words = np.packbits(np.array(read[: len(read) // 8 * 8]))
    blocks, each = _BLOCKS[version, level]
    data = np.unpackbits(words[: blocks * each].reshape(each, blocks).T.reshape(-1))
    assert list(data[:4]) == [0, 1, 0, 0], "only bytes are read"
    length = np.packbits(data[4:12])[0]
    return np.packbits(data[12 : 12 + 8 * int(length)]).tobytes().decode()
