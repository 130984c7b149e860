# Another reader of the published format (huggingface.co/docs/safetensors), by the standard library
# alone: "NAME SHAPE", then a line of 8 hexadecimal digits for each element, tensor by tensor.
import json
import struct
import sys

bytes_ = open(sys.argv[1], "rb").read()
(length,) = struct.unpack_from("<Q", bytes_)
header = json.loads(bytes_[8 : 8 + length].decode("utf-8"))
assert (8 + length) % 8 == 0, "data are not aligned"
data = bytes_[8 + length :]
assert header.pop("__metadata__", {}) == {"format": "pt"}
position = 0
for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    begin, end = tensor["data_offsets"]
    assert tensor["dtype"] == "F32" and begin == position, name
    position = end
    print(name, "x".join(str(extent) for extent in tensor["shape"]))
    for (word,) in struct.iter_unpack("<I", data[begin:end]):
        print("%08x" % word)
assert position == len(data)
