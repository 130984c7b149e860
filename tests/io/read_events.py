# Another reader of TensorBoard's event files, by the standard library alone and with its own CRC32C:
#   read_events.py FOLDER        "TAG<tab>STEP<tab>8 hexadecimal digits of the float", in the order of the
#                                files, after what START events take back
#   read_events.py --cuts FILE   FILE cut off after each of its bytes: the number of events read
import os
import struct
import sys


def make_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = make_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    """Whole ones; a last one that is cut off is passed over, a wrong byte is not."""
    at = 0
    while at + 12 <= len(data):
        length, length_crc = struct.unpack_from("<QI", data, at)
        assert length_crc == masked_crc(data[at : at + 8]), "length at byte %d" % at
        end = at + 12 + length
        if end + 4 > len(data):
            return
        assert struct.unpack_from("<I", data, end)[0] == masked_crc(data[at + 12 : end]), "record at byte %d" % at
        yield data[at + 12 : end]
        at = end + 4


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Of a message: (number, value); integers as such, the rest as bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            if kind == 2:
                size, at = varint(data, at)
            else:
                size = {1: 8, 5: 4}[kind]
            assert at + size <= len(data)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def events(data):
    for record in records(data):
        event = dict(fields(record))
        assert 1e9 < struct.unpack("<d", event[1])[0] < 1e10, "wall time"
        yield event


def values(summary):
    for number, value in fields(summary):
        assert number == 1
        one = dict(fields(value))
        assert sorted(one) == [1, 2]
        yield one[1].decode("utf-8"), "%08x" % struct.unpack("<I", one[2])[0]


if sys.argv[1] == "--cuts":
    whole = open(sys.argv[2], "rb").read()
    for size in range(len(whole) + 1):
        print(sum(1 for _ in events(whole[:size])))
    sys.exit()
found = []
for name in sorted(os.listdir(sys.argv[1])):
    assert "tfevents" in name, name
    for i, event in enumerate(events(open(os.path.join(sys.argv[1], name), "rb").read())):
        step = event.get(2, 0)
        if i == 0:
            assert event[3] == b"brain.Event:2" and step == 0
        elif 7 in event:
            assert dict(fields(event[7])) == {1: 1}
            found = [one for one in found if one[1] < step]
        else:
            found += [(tag, step, bits) for tag, bits in values(event[5])]
for one in found:
    print("%s\t%d\t%s" % one)
