# As read_events.py FOLDER, by TensorBoard's own reader (the package tensorboard).
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
for tag in events.Tags()["scalars"]:
    for one in events.Scalars(tag):
        print("%s\t%d\t%08x" % (tag, one.step, struct.unpack("<I", struct.pack("<f", one.value))[0]))
