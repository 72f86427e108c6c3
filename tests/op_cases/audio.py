"""Sound: WAV files, spectrograms and mel-frequency cepstral coefficients."""

import struct

import numpy as np

from harness import Feed


def wav(samples, rate=16000, channels=1, extra=b"", format_size=16, bits=16, kind=1, data_size=None):
    """A file of 16-bit samples."""
    data = np.asarray(samples, np.int16).tobytes()
    frame = channels * bits // 8
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * frame, frame, bits) + bytes(format_size - 16)
    size = len(data) if data_size is None else data_size
    chunks = b"WAVEfmt " + struct.pack("<I", format_size) + form + extra
    chunks += b"data" + struct.pack("<I", size) + data
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


def file(content):
    """A file to feed."""
    return Feed(np.array(content, object), [])


def sound(count, channels=1):
    """Two tones and a little noise."""
    t = np.arange(count) / 16000
    noise = np.random.RandomState(3).uniform(-0.05, 0.05, (count, channels))
    wave = 0.5 * np.sin(2 * np.pi * 440 * t) + 0.25 * np.sin(2 * np.pi * 3000 * t)
    return (wave[:, None] + noise).round(4).astype(np.float32)


def cases(c):
    """All of the family."""
    files(c)
    spectra(c)
    coefficients(c)


def files(c):
    """DecodeWav: what is read, what is repeated or left silent, what is refused."""
    samples = [0, 1, -1, 32767, -32768, 1234]
    c.op("DecodeWav", file(wav(samples)))
    c.op("DecodeWav", file(wav(samples, rate=44100, channels=2)), case="stereo")
    c.op("DecodeWav", file(wav(samples, channels=2)), desired_channels=1, case="dropped")
    c.op("DecodeWav", file(wav(samples, channels=2)), desired_channels=4, case="repeated")
    c.op("DecodeWav", file(wav(samples)), desired_samples=3, case="cut")
    c.op("DecodeWav", file(wav(samples)), desired_samples=9, desired_channels=2, case="silent")
    c.op("DecodeWav", file(wav([])), case="empty")
    c.op("DecodeWav", file(wav([])), desired_samples=2, case="all_silent")
    listed = b"LIST" + struct.pack("<I", 5) + b"abcde"
    c.op("DecodeWav", file(wav(samples, extra=listed, format_size=18)), case="chunks")
    c.op("DecodeWav", file(wav(samples, data_size=11)[:-1]), case="odd_size", fails="chunk")
    c.op("DecodeWav", wav(samples), case="constant")
    for name, content, words in (
        ("nothing", b"", "RIFF"),
        ("text", b"no sound at all, only words", "RIFF"),
        ("bits", wav(samples, bits=8), "8 bits"),
        ("float", wav(samples, kind=3), "audio format 3"),
        ("channels", wav(samples, channels=0), "no channels"),
        ("short", wav(samples, data_size=400), "cut off"),
        ("huge", wav(samples, data_size=0xFFFFFFFE), "cut off"),
        ("two", wav(samples) + b"data\0\0\0\0", "more than one"),
        ("none", wav([])[:-8], "no data chunk"),
        ("no_format", b"RIFF\x0c\0\0\0WAVEdata\0\0\0\0", "format chunk"),
        ("long_format", wav(samples, format_size=20), "format chunk"),
        ("rate", wav(samples)[:28] + struct.pack("<I", 5) + wav(samples)[32:], "in a second"),
    ):
        c.op("DecodeWav", file(content), case=name, fails=words)


def spectra(c):
    """AudioSpectrogram: sizes of windows, strides past them, several channels."""
    for window, stride in ((64, 32), (100, 40), (2, 1), (33, 70)):
        x = Feed(sound(200), "rows")
        c.op("AudioSpectrogram", x, window_size=window, stride=stride, case=f"{window}_{stride}", atol=1e-6)
    options = {"window_size": 48, "stride": 24, "atol": 1e-6}
    c.op("AudioSpectrogram", Feed(sound(100, 3), "rows"), magnitude_squared=True, case="squared", **options)
    c.op("AudioSpectrogram", Feed(sound(100, 3), [None, None]), case="channels", **options)
    c.op("AudioSpectrogram", Feed(sound(47), "rows"), case="short", **options)
    c.op("AudioSpectrogram", Feed(sound(48), "rows"), case="just_one", **options)
    c.op("AudioSpectrogram", Feed(sound(0), "rows"), case="empty", **options)
    bad = sound(48)
    bad[3] = np.nan
    c.op("AudioSpectrogram", Feed(bad, "rows"), case="nan", **options)


def coefficients(c):
    """Mfcc: bands, limits, silence, sample rates."""
    rate = np.int32(16000)
    power = np.random.RandomState(5).uniform(0, 4, (3, 2, 129)).round(3).astype(np.float32)
    options = {"rtol": 1e-5, "atol": 1e-4}
    c.op("Mfcc", Feed(power), rate, **options)
    c.op("Mfcc", Feed(power), Feed(np.int32(8000), []), case="rate", **options)
    c.op("Mfcc", Feed(power), rate, case="bands", filterbank_channel_count=7, dct_coefficient_count=7, **options)
    c.op("Mfcc", Feed(power), rate, case="limits", lower_frequency_limit=300, upper_frequency_limit=7999, **options)
    c.op("Mfcc", Feed(power), rate, case="past_the_end", upper_frequency_limit=9000, **options)
    c.op("Mfcc", Feed(power * 0), rate, case="silence", **options)
    c.op("Mfcc", Feed(power[:0]), rate, case="empty", **options)
    c.op("Mfcc", Feed(power[:1, :, :5]), rate, case="coarse", upper_frequency_limit=7000, **options)
    c.op("Mfcc", Feed(power), np.int32(0), case="no_rate", fails="sample rate")
    c.op("Mfcc", Feed(power), rate, case="limits_crossed", lower_frequency_limit=5000, fails="frequency limits")
