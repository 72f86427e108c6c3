"""Changes of model files by a random.Random, which get past checksums: those of zip members and of checkpoints are made anew.

A model is {path in its directory: bytes}. Mutants of one kind and seed are the same in every run.
"""
import io
import re
import struct
import zipfile

NUMBERS = [0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]
TEXTS = ["0", "1", "-1", "2", "65536", "2147483647", "2147483648", "-9223372036854775808", "18446744073709551615", "1e300", "nan",
         "-0.5", '""', "true", "null", "[]", "{}"]


def changed(data, rng, other=b""):
    """One to four changes of some bytes. `other` is where splices come from."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not data:
            break
        at, kind = rng.randrange(len(data)), rng.randrange(20)
        if kind < 6:
            data[at] ^= 1 << rng.randrange(8)
        elif kind < 10:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind < 14:
            size = rng.choice((2, 4, 8))
            number = rng.choice(NUMBERS) & ((1 << 8 * size) - 1)
            data[at:at + size] = number.to_bytes(size, "little")[:len(data) - at]
        elif kind < 15:
            del data[at:at + rng.choice((1, 2, 8, 64))]
        elif kind < 16:
            data[at:at] = data[at:at + rng.choice((1, 8, 64))] * rng.choice((1, 1, 3, 100))
        elif kind < 18:
            source = other or bytes(data)
            start = rng.randrange(len(source))
            part = source[start:start + rng.choice((4, 16, 128))]
            data[at:at + len(part)] = part
        elif kind < 19:
            end = rng.randrange(len(data))
            data[at:at + 16], data[end:end + 16] = data[end:end + 16], data[at:at + 16]
        else:
            del data[at:]
    return bytes(data)


def changed_text(data, rng, other=b""):
    """Numbers, words and lines of a text, or its bytes."""
    if rng.random() < 0.3:
        return changed(data, rng, other)
    text = data.decode("utf-8", "replace")
    for _ in range(rng.choice((1, 1, 1, 2))):
        kind = rng.randrange(7)
        numbers = [m.span() for m in re.finditer(r"(?<![\w.])-?\d+(\.\d+)?", text)]
        words = [m.span() for m in re.finditer(r'(?<=")\w+' if kind < 6 else r"[A-Za-z_]\w+", text)]
        if kind < 3 and numbers:
            start, end = rng.choice(numbers)
            text = text[:start] + rng.choice(TEXTS) + text[end:]
        elif kind != 5 and len(words) > 1:
            (start, end), (a, b) = rng.choice(words), rng.choice(words)
            text = text[:start] + text[a:b] + text[end:]
        else:
            lines = re.split(r"(?<=[\n,])", text)
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[a:a + 1] = rng.choice(([], [lines[a]] * rng.choice((2, 50)), [lines[b]]))
            text = "".join(lines)
    return text.encode("utf-8", "surrogatepass")


# ---- archives ----

def changed_archive(data, rng, other):
    """A .keras file: its bytes, or those of a member, packed again with the right checksum."""
    if rng.random() < 0.1:
        return changed(data, rng, other)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(("config.json", "model.weights.h5"))
    change = changed_text if name == "config.json" else changed
    members[name] = change(members[name], rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for member, contents in members.items():
            archive.writestr(zipfile.ZipInfo(member, (1980, 1, 1, 0, 0, 0)), contents)
    return out.getvalue()


# ---- checkpoints: a table of keys and BundleEntryProtos, and a shard of values ----

def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = _crc_table()
STRING = 7  # of DataType
MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def masked_crc32c(data):
    return masked(crc32c(data))


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def block_entries(block):
    """The keys and values of an uncompressed block."""
    (restarts,) = struct.unpack("<I", block[-4:])
    end, at, key, entries = len(block) - 4 - 4 * restarts, 0, b"", []
    while at < end:
        shared, at = read_varint(block, at)
        rest, at = read_varint(block, at)
        size, at = read_varint(block, at)
        key = key[:shared] + block[at:at + rest]
        entries.append((key, block[at + rest:at + rest + size]))
        at += rest + size
    return entries


def read_table(data):
    """All entries of a table of uncompressed blocks, as TensorFlow writes the index of a checkpoint."""
    footer = data[-48:]
    at = read_varint(footer, read_varint(footer, 0)[1])[1]
    offset, at = read_varint(footer, at)
    size, _ = read_varint(footer, at)
    entries = []
    for _, handle in block_entries(data[offset:offset + size]):
        start, at = read_varint(handle, 0)
        length, _ = read_varint(handle, at)
        entries += block_entries(data[start:start + length])
    return entries


def block_of(entries):
    block = b"".join(varint(0) + varint(len(k)) + varint(len(v)) + k + v for k, v in entries)
    return block + struct.pack("<II", 0, 1)


def with_trailer(block):
    return block + b"\0" + struct.pack("<I", masked_crc32c(block + b"\0"))


def table_of(block, rng):
    """A table of one data block, whose checksums are right. `rng`: it may change the blocks behind it too, or be None."""
    data = with_trailer(block)
    index = block_of([(b"\xff", varint(0) + varint(len(block)))])
    if rng is not None and rng.random() < 0.1:
        index = changed(index, rng)
    footer = varint(0) + varint(0) + varint(len(data)) + varint(len(index))
    if rng is not None and rng.random() < 0.1:
        footer = changed(footer, rng)
    return data + with_trailer(index) + footer[:40].ljust(40, b"\0") + MAGIC


def entry_fields(entry):
    """(number, type, value, where it begins, where it ends) of a message's fields."""
    at, fields = 0, []
    while at < len(entry):
        start = at
        tag, at = read_varint(entry, at)
        if tag & 7 == 0:
            value, at = read_varint(entry, at)
        elif tag & 7 == 5:
            value, at = entry[at:at + 4], at + 4
        else:
            size, at = read_varint(entry, at)
            value, at = entry[at:at + size], at + size
        fields.append((tag >> 3, tag & 7, value, start, at))
    return fields


def checksummed(entry, contents):
    """What an entry's checksum is of. Strings are their lengths, the checksum of these, and the bytes; lengths count as numbers."""
    fields = {number: value for number, _, value, _, _ in entry_fields(entry)}
    if fields.get(1) != STRING:
        return contents
    count, at, lengths = 1, 0, b""
    for number, kind, dim, _, _ in entry_fields(fields.get(2, b"")):
        if (number, kind) == (2, 2):
            count *= {n: v for n, _, v, _, _ in entry_fields(dim)}.get(1, 0)
    while len(lengths) < 4 * min(count, len(contents)):
        length, at = read_varint(contents, at)
        lengths += struct.pack("<I", length)
    contents[at:at + 4] = struct.pack("<I", masked_crc32c(lengths))
    return lengths + contents[at:]


def with_checksum(entry, shard):
    """The entry with the checksum of its bytes in the shard, a bytearray; that of strings' lengths, which stands there, is made too."""
    fields = {number: value for number, _, value, _, _ in entry_fields(entry)}
    offset, size = fields.get(4, 0), fields.get(5, 0)
    contents = shard[offset:offset + size]
    crc = masked_crc32c(checksummed(entry, contents))
    shard[offset:offset + len(contents)] = contents
    for number, _, _, _, end in entry_fields(entry):
        if number == 6:
            return entry[:end - 4] + struct.pack("<I", crc) + entry[end:]
    return entry


def with_checksums(entries, shard):
    """The entries, and the shard."""
    shard, made = bytearray(shard), []
    for key, value in entries:
        try:
            made.append((key, with_checksum(value, shard) if key else value))
        except (IndexError, TypeError, AttributeError, ValueError, struct.error):
            made.append((key, value))  # it is no entry any more
    return made, bytes(shard)


def changed_entry(entry, rng):
    """A number of the entry, its shape, or any byte."""
    fields = [f for f in entry_fields(entry) if f[1] in (0, 2)]
    if not fields or rng.random() < 0.3:
        return changed(entry, rng)
    number, kind, value, start, end = rng.choice(fields)
    if kind == 0:
        new = rng.choice(NUMBERS + [value + 1, value * 2, max(value - 1, 0), 3, 6, 9, 20])
        return entry[:start] + varint(number << 3) + varint(new & (1 << 64) - 1) + entry[end:]
    value = changed(value, rng)
    return entry[:start] + varint(number << 3 | 2) + varint(len(value)) + value + entry[end:]


def changed_checkpoint(model, rng):
    """The index, an entry of it, or a shard, with the right checksums."""
    index_name = next(name for name in model if name.endswith(".index"))
    shard_name = next(name for name in model if ".data-" in name)
    index, shard, how = model[index_name], model[shard_name], rng.random()
    if how < 0.05:
        return {**model, index_name: changed(index, rng)}
    entries = read_table(index)
    if how < 0.45:  # values of the entries, and where they lie
        number = rng.randrange(len(entries))
        key, value = entries[number]
        entries[number] = (key, changed_entry(value, rng))
    elif how < 0.6:
        shard = changed(shard, rng)
    elif how < 0.75:
        a, b = rng.randrange(len(entries)), rng.randrange(len(entries))
        entries[a] = rng.choice(((changed(entries[a][0], rng), entries[a][1]), (entries[a][0], entries[b][1]), entries[b]))
    if how < 0.6:
        entries, shard = with_checksums(entries, shard)
    block = block_of(entries)
    if how >= 0.75:  # the block's own form
        block = changed(block, rng)
    return {**model, index_name: table_of(block, rng), shard_name: shard}


def mutant(kind, models, rng):
    """A mutant of one of the models, of which all are of this kind."""
    model, other = rng.choice(models), rng.choice(models)
    if kind == "checkpoint":
        return changed_checkpoint(model, rng)
    name = "saved_model.pb" if kind == "saved_model" else next(iter(model))
    contents, splice = model[name], next(iter(other.values()))
    change = {"keras": changed_archive, "text": changed_text}.get(kind, changed)
    return {**model, name: change(contents, rng, splice)}
