"""Images as files: JPEG, PNG, BMP and GIF, decoded and encoded."""

import struct
import zlib

import numpy as np
import tensorflow as tf

from harness import Feed


def picture(height, width, channels, dtype=np.uint8):
    """Smooth colours with an edge and some noise."""
    rng = np.random.RandomState(height * 1000 + width * 10 + channels)
    y, x = np.mgrid[0:height, 0:width]
    planes = [np.sin(y / (2.0 + k)) + np.cos(x / (3.0 + k)) + (x > width // 2) for k in range(channels)]
    image = np.stack(planes, -1) * 50 + 100 + rng.randint(-9, 9, (height, width, channels))
    image = np.clip(image, 0, 255)
    return (image * 257 if dtype == np.uint16 else image).astype(dtype)


def file(data):
    """The bytes of a file, to feed."""
    return Feed(np.array(data, object), [])


def jpeg(height, width, channels, **options):
    """A JPEG file by TensorFlow."""
    return tf.io.encode_jpeg(picture(height, width, channels), **options).numpy()


def chunk(kind, data):
    """A chunk of a PNG file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, rows, extra=b"", interlace=0):
    """A PNG file of unfiltered rows of bytes."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def codes(pixels, bits=2):
    """GIF's codes of pixels, without the use of what was seen: the table is cleared in time, so that codes stay short."""
    numbers = []
    for i, pixel in enumerate(pixels):
        if i % (2**bits - 2) == 0:
            numbers.append(2**bits)
        numbers.append(pixel)
    numbers.append(2**bits + 1)
    packed = sum(number << i * (bits + 1) for i, number in enumerate(numbers))
    return packed.to_bytes((len(numbers) * (bits + 1) + 7) // 8, "little")


def blocks(data, size=255):
    """GIF's parts of data, with an empty one at the end."""
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    return b"".join(bytes([len(p)]) + p for p in parts) + b"\0"


def frame(left, top, width, height, pixels, transparent=None, interlaced=False, colours=b"", data=None, size=255):
    """A frame of a GIF file."""
    control = b"" if transparent is None else b"\x21\xf9\4\1\0\0" + bytes([transparent]) + b"\0"
    flags = interlaced << 6 | (0x81 if colours else 0)
    head = b"\x2c" + struct.pack("<HHHHB", left, top, width, height, flags)
    return control + head + colours + b"\2" + blocks(codes(pixels) if data is None else data, size)


COLOURS = bytes([255, 0, 0, 0, 255, 0, 10, 20, 30, 200, 100, 50])


def gif(width, height, *frames, colours=COLOURS, tail=b"\x3b"):
    """A GIF file of four colours."""
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x81 if colours else 1, 0, 0)
    return head + colours + b"".join(frames) + tail


def repeated(width, height):
    """A frame whose codes stand for ever longer runs of one colour."""
    numbers, left, length = [4, 1], width * height - 1, 2
    while left >= length:
        numbers.append(6 + len(numbers) - 2)
        left, length = left - length, length + 1
    numbers += [1] * left + [5]
    bits, packed, at, known = 3, 0, 0, 6
    for i, number in enumerate(numbers):
        packed |= number << at
        at += bits
        known += i > 1
        if known == 1 << bits and bits < 12:
            bits += 1
    return frame(0, 0, width, height, [], data=packed.to_bytes((at + 7) // 8, "little"))


RAMP = [(x + y) % 4 for y in range(5) for x in range(4)]
GIFS = {
    "one": gif(4, 5, frame(0, 0, 4, 5, RAMP)),
    "interlaced": gif(4, 5, frame(0, 0, 4, 5, RAMP, interlaced=True, size=3)),
    "animated": gif(
        4,
        5,
        frame(0, 0, 4, 5, RAMP),
        b"\x21\xfe" + blocks(b"a comment"),
        frame(1, 2, 2, 2, [0, 1, 2, 3], transparent=2),
        frame(0, 0, 4, 5, RAMP[::-1], colours=bytes(range(12)), transparent=0),
    ),
    "small_first": gif(4, 5, frame(1, 1, 2, 2, [0, 1, 2, 3], transparent=1), frame(0, 0, 4, 5, RAMP)),
    "over_the_edge": gif(4, 5, frame(0, 0, 3, 3, RAMP[:9]), frame(2, 2, 3, 3, RAMP[:9])),
    "repeated": gif(40, 30, repeated(40, 30)),
}

PALETTE = chunk(b"PLTE", bytes([255, 0, 0, 0, 255, 0, 10, 20, 30, 200, 100, 50]))
PNGS = {
    "grey1": png(10, 2, 1, 0, [b"\xaa\x80", b"\x55\x40"]),
    "grey2": png(5, 2, 2, 0, [b"\x1b\x00", b"\xe4\xc0"]),
    "grey4": png(3, 2, 4, 0, [b"\x0f\x70", b"\x81\x20"]),
    "grey_marked": png(2, 1, 8, 0, [b"\x10\x20"], chunk(b"tRNS", b"\0\x10")),
    "palette": png(4, 1, 2, 3, [b"\x1b"], PALETTE),
    "palette_marked": png(4, 1, 8, 3, [b"\0\1\2\3"], PALETTE + chunk(b"tRNS", b"\x80\x40")),
    "rgb16": png(2, 1, 16, 2, [bytes(range(12))]),
    "rgba": png(2, 1, 8, 6, [bytes(range(100, 108))]),
    "grey_alpha": png(2, 1, 8, 4, [b"\x10\x20\x30\x40"]),
    "interlaced": png(3, 2, 8, 0, [b"\1", b"\2", b"\3\4", b"\5\6\7"], interlace=1),
}


def bmp(width, height, bits, pixels):
    """A BMP file."""
    head = b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 0, len(pixels), 0, 0, 0, 0) + pixels


def cases(c):
    """All of the family."""
    jpegs(c)
    broken_jpegs(c)
    pngs(c)
    others(c)
    gifs(c)
    encoders(c)


def jpegs(c):
    """Sampling, ratios, channels, progressive files, crops."""
    plain = file(jpeg(17, 21, 3))
    c.op("DecodeJpeg", plain, case="plain")
    for ratio in (2, 4, 8):
        c.op("DecodeJpeg", plain, ratio=ratio, case=f"ratio_{ratio}")
    for channels in (1, 3):
        c.op("DecodeJpeg", plain, channels=channels, case=f"to_{channels}")
        c.op("DecodeJpeg", file(jpeg(9, 8, 1)), channels=channels, case=f"grey_to_{channels}")
    c.op("DecodeJpeg", file(jpeg(9, 8, 1)), case="grey")
    c.op("DecodeJpeg", plain, fancy_upscaling=False, case="plain_upscaling")
    c.op("DecodeJpeg", plain, dct_method="INTEGER_ACCURATE", case="accurate")
    c.op("DecodeJpeg", plain, dct_method="INTEGER_FAST", case="fast")
    c.op("DecodeJpeg", file(jpeg(19, 18, 3, progressive=True)), case="progressive")
    c.op("DecodeJpeg", file(jpeg(33, 16, 3, quality=30, chroma_downsampling=False)), case="no_sampling")
    c.op("DecodeJpeg", file(jpeg(1, 1, 3)), case="one")
    for name, window in (("inside", [3, 5, 9, 7]), ("all", [0, 0, 17, 21]), ("end", [16, 20, 1, 1]), ("block", [8, 16, 8, 5])):
        c.op("DecodeAndCropJpeg", plain, np.array(window, np.int32), case=name)
    c.op("DecodeAndCropJpeg", plain, Feed(np.array([2, 1, 5, 17], np.int32), [4]), channels=1, case="fed_grey")
    c.op("DecodeAndCropJpeg", plain, np.array([1, 1, 4, 4], np.int32), ratio=2, case="ratio")
    for name, window in (("outside", [3, 5, 15, 7]), ("empty", [3, 5, 0, 7]), ("negative", [-1, 0, 2, 2])):
        c.op("DecodeAndCropJpeg", plain, np.array(window, np.int32), case=name, fails="crop window")
    for kind in (tf.int32, tf.int64):
        c.op("ExtractJpegShape", plain, output_type=kind, case=kind.name)
    c.op("ExtractJpegShape", file(jpeg(9, 8, 1)), case="grey")
    for kind in (tf.uint8, tf.uint16, tf.float32):
        c.op("DecodeImage", file(jpeg(5, 6, 3)), dtype=kind, case=f"jpeg_{kind.name}")


def broken_jpegs(c):
    """Truncated files, with and without what makes them do."""
    whole = jpeg(40, 24, 3)
    for cut in (len(whole) - 2, len(whole) * 4 // 5, len(whole) * 3 // 5):
        part = file(whole[:cut])
        c.op("DecodeJpeg", part, case=f"cut_{cut}", fails="JPEG")
        c.op("DecodeJpeg", part, try_recover_truncated=True, case=f"recovered_{cut}")
    c.op("DecodeJpeg", file(whole[:100]), try_recover_truncated=True, case="head", fails="JPEG")
    c.op("DecodeJpeg", file(b""), case="empty", fails="empty")
    c.op("DecodeJpeg", file(b"no image"), case="text", fails="Unknown image file format")
    c.op("DecodeJpeg", file(b"\xff\xd8\xff"), case="start", fails="JPEG")


def pngs(c):
    """Depths, colours, palettes, transparency, interlacing; and what is asked for."""
    for name, data in PNGS.items():
        c.op("DecodePng", file(data), case=name)
        c.op("DecodePng", file(data), dtype=tf.uint16, case=f"{name}_wide")
        for channels in (1, 3, 4):
            c.op("DecodePng", file(data), channels=channels, case=f"{name}_to_{channels}")
    photo = tf.io.encode_png(picture(9, 11, 3)).numpy()
    c.op("DecodePng", file(photo), case="filtered")
    c.op("DecodePng", file(photo), channels=1, case="filtered_grey")
    for op in ("DecodeJpeg", "DecodeImage"):
        c.op(op, file(photo), case="png")
    c.op("DecodePng", file(jpeg(4, 4, 3)), case="jpeg")
    for kind in (tf.uint8, tf.uint16, tf.float32):
        c.op("DecodeImage", file(PNGS["rgb16"]), dtype=kind, case=f"png16_{kind.name}")
        c.op("DecodeImage", file(PNGS["rgba"]), dtype=kind, case=f"png_{kind.name}")
    c.op("DecodePng", file(photo[:-30]), case="cut", fails="PNG")
    c.op("DecodePng", file(photo[:40]), case="head", fails="PNG")
    damaged = photo[:60] + bytes([photo[60] ^ 255]) + photo[61:]
    c.op("DecodePng", file(damaged), case="damaged", fails="PNG")
    c.op("DecodePng", file(png(2**30, 2**30, 8, 0, [b""])), case="huge", fails="PNG")
    c.op("DecodeAndCropJpeg", file(photo), np.array([0, 0, 1, 1], np.int32), case="png", fails="DecodeAndCropJpeg")


def others(c):
    """BMP, and formats that the op does not take."""
    rows = bytes(range(8)) + bytes(range(50, 58))
    c.op("DecodeBmp", file(bmp(2, 2, 24, rows)), case="rgb")
    c.op("DecodeBmp", file(bmp(2, -2, 24, rows)), case="top_down")
    c.op("DecodeBmp", file(bmp(2, 2, 32, rows)), case="rgba")
    c.op("DecodeBmp", file(bmp(3, 1, 8, b"\1\2\3\4")), case="grey")
    c.op("DecodeBmp", file(bmp(3, 1, 8, b"\1\2\3\4")), channels=4, case="grey_to_4")
    c.op("DecodeBmp", file(bmp(2, 2, 24, rows)), channels=4, case="rgb_to_4")
    c.op("DecodeBmp", file(bmp(2, 2, 32, rows)), channels=3, case="rgba_to_3")
    c.op("DecodeImage", file(bmp(2, 2, 24, rows)), case="bmp")
    for kind in (tf.uint16, tf.float32):
        c.op("DecodeImage", file(bmp(2, 2, 24, rows)), dtype=kind, case=f"bmp_{kind.name}")
    c.op("DecodeBmp", file(bmp(2, 3, 24, rows)), case="short", fails="BMP")
    c.op("DecodeBmp", file(bmp(2**20, 2**20, 24, rows)), case="huge", fails="BMP")
    c.op("DecodeBmp", file(bmp(2, 2, 24, rows)), channels=1, case="to_1", fails="channels")
    c.op("DecodeBmp", file(jpeg(4, 4, 3)), case="jpeg", fails="DecodeBmp")
    c.op("DecodeJpeg", file(bmp(2, 2, 24, rows)), case="bmp", fails="BMP")


def gifs(c):
    """Frames whole, in part and over each other; what other ops make of them; and broken files."""
    for name, data in GIFS.items():
        c.op("DecodeGif", file(data), case=name)
        c.op("DecodeImage", file(data), case=f"gif_{name}")
        c.op("DecodeImage", file(data), expand_animations=False, case=f"gif_{name}_first")
    for kind in (tf.uint16, tf.float32):
        c.op("DecodeImage", file(GIFS["animated"]), dtype=kind, case=f"gif_{kind.name}")
    for op in ("DecodeJpeg", "DecodePng"):
        c.op(op, file(GIFS["one"]), case="gif")
        c.op(op, file(GIFS["animated"]), case="gif_animated", fails="frames")
    c.op("DecodeGif", file(jpeg(4, 4, 3)), case="jpeg")
    c.op("DecodeGif", file(PNGS["palette"]), case="png")
    c.op("DecodeImage", file(PNGS["palette"]), expand_animations=False, case="png_first")
    c.op("DecodeImage", file(GIFS["one"]), channels=4, case="gif_to_4", fails="channels")
    c.op("DecodeBmp", file(GIFS["one"]), case="gif", fails="DecodeBmp")
    c.op("DecodeAndCropJpeg", file(GIFS["one"]), np.array([0, 0, 1, 1], np.int32), case="gif", fails="DecodeAndCropJpeg")
    whole = GIFS["animated"]
    for cut in (len(whole) - 1, len(whole) - 9, len(whole) // 2):
        c.op("DecodeGif", file(whole[:cut]), case=f"cut_{cut}")
    for cut in (30, 12):
        c.op("DecodeGif", file(whole[:cut]), case=f"cut_{cut}", fails="GIF")
    wrong = {
        "none": gif(4, 5),
        "no_colours": gif(4, 5, frame(0, 0, 4, 5, RAMP), colours=b""),
        "short": gif(4, 5, frame(0, 0, 4, 5, RAMP[:-3])),
        "codes": gif(4, 5, frame(0, 0, 4, 5, [], data=b"\xff\xff\xff")),
        "huge": gif(4, 5, frame(0, 0, 65535, 65535, RAMP)),
    }
    for name, data in wrong.items():
        c.op("DecodeGif", file(data), case=name, fails="GIF")
    c.op("DecodeGif", file(gif(4, 5, frame(0, 0, 4, 5, RAMP), tail=b"\x99\x99")), case="tail")


def encoders(c):
    """Files just as TensorFlow writes them, or images that come back."""
    for channels in (1, 3):
        image = Feed(picture(9, 10, channels), [None, None, channels])
        c.op("EncodeJpeg", image, case=str(channels))
        c.op("EncodeJpeg", image, quality=40, case=f"{channels}_40")
        c.op("EncodeJpeg", image, progressive=True, optimize_size=True, case=f"{channels}_small")
        c.op("EncodeJpegVariableQuality", image, Feed(np.array(70, np.int32), []), case=str(channels))
    image = Feed(picture(9, 10, 3), [None, None, 3])
    c.op("EncodeJpeg", image, chroma_downsampling=False, case="no_sampling")
    c.op("EncodeJpeg", image, xmp_metadata="<x/>", density_unit="cm", x_density=7, y_density=9, case="metadata")
    c.op("EncodeJpeg", image, format="grayscale", case="format", fails="channels")
    for kind in (np.uint8, np.uint16):
        for channels in (1, 2, 3, 4):
            image = Feed(picture(5, 6, channels, kind), [None, None, channels])
            c.op("EncodePng", image, case=str(channels))
        c.op("EncodePng", Feed(np.stack([picture(3, 4, 3, kind)] * 2)), case="batch")
    c.op("EncodePng", Feed(picture(5, 6, 3), [None, None, 3]), compression=9, case="best")
    c.op("EncodePng", Feed(picture(5, 6, 3), [None, None, 3]), compression=0, case="none")
    c.op("EncodePng", Feed(np.zeros((0, 6, 3), np.uint8), [None, None, 3]), case="empty", fails="PNG")
