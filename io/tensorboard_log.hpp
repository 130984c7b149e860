// Scalars by tag and step in TensorBoard's event files, for people who watch their runs there.
// Written by a few lines of our own: of protocol buffers it takes three messages of plain fields.
//
// The formats, as their owners describe them:
// - TFRecord (tensorflow.org/tutorials/load_data/tfrecord, "TFRecords format details"):
//     uint64 length, uint32 masked CRC32C of the length, bytes, uint32 masked CRC32C of the bytes;
//   little-endian; masked: rotated right by 15, plus 0xA282EAD8.
// - Event, SessionLog, Summary (tensorboard/compat/proto/event.proto, summary.proto), in the wire
//   format of protocol buffers (protobuf.dev/programming-guides/encoding):
//     Event: double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
//            SessionLog session_log = 7
//     SessionLog: enum status = 1, of which START is 1
//     Summary: repeated Value value = 1; Value: string tag = 1; float simple_value = 2
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"
#include "io/file.hpp"

namespace weft {

struct TaggedValue {
  std::string tag;  // "train/loss": a chart; what is before the first / groups charts
  double value = 0.0;
};

// Framed as a record.
std::string tf_record(std::string_view bytes);
// An Event as bytes. `wall_s`: seconds since 1970. Values become the nearest floats.
std::string scalars_event(double wall_s, index_t step, const std::vector<TaggedValue>& values);

// The event files of one run, in a folder of their own.
class TensorboardLog {
 public:
  // Opens a new file, events.out.tfevents.SECONDS.HOST.PID.N, that readers take after all others in
  // `folder`, which is made where there is none. It begins with a START of step `num_done` + 1:
  // at that, readers forget what earlier files say of this step and later ones. So a run that
  // goes on from a checkpoint has each step once, wherever it was killed. For one process at a
  // time.
  TensorboardLog(const std::string& folder, index_t num_done);

  static bool is_in(const std::string& folder);  // whether it holds event files

  const std::string& path() const { return file_.path(); }
  // One record and one write call, so that at a kill no more than the last record is cut short,
  // which readers pass over. Nothing for no values.
  void add(index_t step, const std::vector<TaggedValue>& values);
  void sync() { file_.sync(); }  // to the disk

 private:
  OutputFile file_;
};

}  // namespace weft
