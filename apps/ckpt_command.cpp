#include "apps/ckpt_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "apps/ckpt_output.hpp"
#include "apps/kept_checkpoints.hpp"
#include "apps/progress_line.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint_diff.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/pins.hpp"
#include "io/checkpoint/verify.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

std::uint64_t bytes_of(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const Manifest::File& file : manifest.files) bytes += file.num_bytes;
  return bytes;
}

Json manifest_json(const Manifest& manifest) {
  return {{"step", manifest.step},
          {"written", manifest.written},
          {"id", manifest.id},
          {"weft", manifest.program},
          {"plan", manifest.plan_name},
          {"plan_hash", manifest.plan_hash},
          {"layout", manifest.layout},
          {"elements", manifest.num_elements},
          {"bytes", bytes_of(manifest)},
          {"files", manifest.files.size() + 1},
          {"state_fingerprint", manifest.state_fingerprint}};
}

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

Json shape_json(const Shape& shape) {
  Json extents = Json::array();
  for (int dim = 0; dim < shape.num_dims(); ++dim) extents.push_back(shape[dim]);
  return extents;
}

void finish(const CkptOptions& options, const Json& json, std::ostream& text, std::ostream& out) {
  finish_ckpt(options.json, json, text, out);
}

// What is special about checkpoints of a folder: for a look, where nothing is a fault that stops.
struct Marks {
  std::set<index_t> pinned, best;
  std::string fault;

  explicit Marks(const std::string& folder, const std::vector<CheckpointPlace>& places) {
    try {
      pinned = pinned_steps(folder);
      auto retention = recorded_retention(folder);
      if (!retention) return;
      // The best one is of interest where the plan does not keep it, too.
      retention->keep_best = std::max<index_t>(1, retention->keep_best);
      best = best_steps(*retention, places, opens);
    } catch (const Error& error) {
      fault = error.what();
    }
  }

  std::string text(index_t step) const {
    std::string text = pinned.contains(step) ? "  pinned" : "";
    return best.contains(step) ? text + "  best" : text;
  }
};

}  // namespace

int ckpt_ls(const CkptOptions& options, std::ostream& text, std::ostream& out) {
  const std::string folder = checkpoints_of(options.path);
  Json list = Json::array();
  bool is_damaged = false;
  text << fmt::format("{:>10}  {:20}  {:>10}  {:>5}  {:32}  {}\n", "step", "written", "MiB",
                      "files", "state", "layout");
  const std::vector<CheckpointPlace> places = list_checkpoints(folder);
  const Marks marks(folder, places);
  for (const CheckpointPlace& place : places) {
    Json one{{"step", place.step},
             {"path", place.path},
             {"pinned", marks.pinned.contains(place.step)},
             {"best", marks.best.contains(place.step)}};
    try {
      const Manifest manifest = open_checkpoint(place.path).manifest;
      one.update(manifest_json(manifest));
      one["opens"] = true;
      text << fmt::format("{:>10}  {:20}  {:>10.2f}  {:>5}  {:32}  {}{}\n", manifest.step,
                          manifest.written, mib(bytes_of(manifest)), manifest.files.size() + 1,
                          manifest.state_fingerprint, manifest.layout, marks.text(place.step));
    } catch (const Error& error) {
      is_damaged = true;
      one["opens"] = false;
      one["fault"] = error.what();
      text << fmt::format("{:>10}  DAMAGED: {}\n", place.step, error.what());
    }
    list.push_back(one);
  }
  if (list.empty()) text << fmt::format("(none in {})\n", folder);
  if (!marks.fault.empty())
    text << fmt::format("which are pinned or best is not all known: {}\n", marks.fault);
  finish(options, {{"folder", folder}, {"checkpoints", list}}, text, out);
  return static_cast<int>(is_damaged ? ExitCode::data : ExitCode::done);
}

namespace {

Json tensors_json(const CheckpointIndex& index) {
  Json tensors = Json::array();
  for (const TensorRecord& tensor : index.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"kind", tensor.kind},
                       {"dtype", tensor.dtype},
                       {"shape", shape_json(tensor.global)},
                       {"fingerprint", hex(tensor.fingerprint)}});
  return tensors;
}

void say_tensors(const CheckpointIndex& index, std::ostream& text) {
  text << "tensors\n";
  for (const TensorRecord& tensor : index.tensors)
    text << fmt::format("  {:28} {:12} {} {:16} {}\n", tensor.name, tensor.kind, tensor.dtype,
                        tensor.global.text(), hex(tensor.fingerprint));
}

// Where the pieces of all kinds of one tensor lie.
Json say_pieces(const Checkpoint& checkpoint, const std::string& name, std::ostream& text) {
  Json pieces = Json::array();
  for (const PieceRecord& piece : checkpoint.index.pieces) {
    const TensorRecord& tensor = checkpoint.tensor_of(piece);
    if (tensor.name != name) continue;
    const BlockRecord& block = checkpoint.index.blocks[static_cast<std::size_t>(piece.first_block)];
    const Box& box = piece.box;
    const std::string& file = checkpoint.file_of(piece).name;
    text << fmt::format("  {:12} rows {}..{}, columns {}..{} in {} from byte {}\n", tensor.kind,
                        box.rows.begin, box.rows.end, box.cols.begin, box.cols.end, file,
                        block.offset);
    pieces.push_back({{"kind", tensor.kind},
                      {"rows", {box.rows.begin, box.rows.end}},
                      {"columns", {box.cols.begin, box.cols.end}},
                      {"file", file},
                      {"offset", block.offset}});
  }
  require(!pieces.empty(), ExitCode::usage,
          fmt::format("--tensor: {} has no tensor {}; leave the option out to see them all",
                      checkpoint.path, name));
  return pieces;
}

}  // namespace

int ckpt_inspect(const CkptOptions& options, std::ostream& text, std::ostream& out) {
  const Checkpoint checkpoint = open_checkpoint(options.path);
  const CheckpointIndex& index = checkpoint.index;
  Json json = manifest_json(checkpoint.manifest);
  if (!options.tensor.empty()) {
    text << options.tensor << "\n";
    json = {{"tensor", options.tensor}, {"pieces", say_pieces(checkpoint, options.tensor, text)}};
    finish(options, json, text, out);
    return 0;
  }
  const Manifest& manifest = checkpoint.manifest;
  text << fmt::format(
      "{}\n  step {} (epoch {}), written {} by weft {}\n  plan {} ({}), layout {}\n"
      "  {} numbers, {:.2f} MiB in {} files\n  state {}\n  numerics {}\nplan\n{}",
      checkpoint.path, manifest.step, index.progress.epoch, manifest.written, manifest.program,
      manifest.plan_name, manifest.plan_hash, manifest.layout, manifest.num_elements,
      mib(bytes_of(manifest)), manifest.files.size() + 1, manifest.state_fingerprint,
      index.identity.numerics, index.identity.plan);
  say_tensors(index, text);
  json["epoch"] = index.progress.epoch;
  json["numerics"] = index.identity.numerics;
  json["data"] = index.identity.data;
  json["split"] = Json::parse(index.identity.split);
  json["plan_toml"] = index.identity.plan;
  json["tensors"] = tensors_json(index);
  finish(options, json, text, out);
  return 0;
}

int ckpt_verify(const CkptOptions& options, std::ostream& text, std::ostream& out) {
  ProgressLine line(text, isatty(STDERR_FILENO) != 0);
  const auto show = [&](std::uint64_t done, std::uint64_t all) {
    line.show([&] { return fmt::format("{:.0f} of {:.0f} MiB", mib(done), mib(all)); });
  };
  VerifyReport report;
  try {
    report = verify_checkpoint(open_checkpoint(options.path), show);
  } catch (const Error& error) {
    if (error.code() != ExitCode::data) throw;
    report.faults.emplace_back(error.what());
    report.num_faults = 1;
  }
  for (const std::string& fault : report.faults) line.keep("DAMAGED: " + fault);
  if (report.num_faults > report.faults.size())
    line.keep(fmt::format("... and {} more", report.num_faults - report.faults.size()));
  if (report.num_faults == 0)
    line.keep(fmt::format("{}: sound; {} blocks, {:.2f} MiB, {} tensors", options.path,
                          report.num_blocks, mib(report.bytes_read), report.num_tensors));
  finish(options,
         {{"path", options.path},
          {"sound", report.num_faults == 0},
          {"faults", report.faults},
          {"num_faults", report.num_faults},
          {"blocks", report.num_blocks},
          {"bytes", report.bytes_read},
          {"tensors", report.num_tensors}},
         text, out);
  return static_cast<int>(report.num_faults == 0 ? ExitCode::done : ExitCode::data);
}

namespace {

std::string describe(const TensorDifference& one) {
  using Kind = TensorDifference::Kind;
  const std::string name = fmt::format("{} ({})", one.name, one.kind);
  if (one.difference == Kind::only_in_a) return name + ": only in the first";
  if (one.difference == Kind::only_in_b) return name + ": only in the second";
  if (one.difference == Kind::shape)
    return fmt::format("{}: {} against {}", name, one.a.text(), one.b.text());
  std::string at;
  for (const index_t i : one.first) at += (at.empty() ? "" : ", ") + std::to_string(i);
  return fmt::format("{}: {} of {} differ, by up to {:.9g}; first at [{}]: {:.9g} against {:.9g}",
                     name, one.num_different, one.a.num_elements(), one.max_difference, at,
                     one.first_a, one.first_b);
}

Json difference_json(const TensorDifference& one) {
  static constexpr const char* words[] = {"equal", "values", "shape", "only_in_a", "only_in_b"};
  Json json{{"name", one.name},
            {"kind", one.kind},
            {"result", words[static_cast<std::size_t>(one.difference)]}};
  if (one.difference != TensorDifference::Kind::values) return json;
  json["different"] = one.num_different;
  json["first"] = one.first;
  json["max_difference"] =
      std::isfinite(one.max_difference) ? Json(one.max_difference) : Json(nullptr);
  return json;
}

}  // namespace

int ckpt_diff(const CkptOptions& options, std::ostream& text, std::ostream& out) {
  const Checkpoint a = open_checkpoint(options.path), b = open_checkpoint(options.other);
  ProgressLine line(text, isatty(STDERR_FILENO) != 0);
  const auto differences = diff_checkpoints(
      a, b, [&](const std::string& name) { line.show([&] { return "comparing " + name; }); });
  Json tensors = Json::array();
  index_t num_different = 0;
  for (const TensorDifference& one : differences) {
    tensors.push_back(difference_json(one));
    if (one.difference == TensorDifference::Kind::equal) continue;
    ++num_different;
    line.keep(describe(one));
  }
  if (a.manifest.step != b.manifest.step)
    line.keep(fmt::format("steps {} and {}", a.manifest.step, b.manifest.step));
  const bool same_losses = have_same_bits(a.index.progress.losses, b.index.progress.losses);
  if (!same_losses) line.keep("the losses of the steps so far differ");
  line.keep(fmt::format("{} of {} tensors are equal, bit for bit",
                        static_cast<index_t>(differences.size()) - num_different,
                        differences.size()));
  const bool equal = num_different == 0 && same_losses && a.manifest.step == b.manifest.step;
  finish(options,
         {{"equal", equal},
          {"steps", {a.manifest.step, b.manifest.step}},
          {"same_losses", same_losses},
          {"different", num_different},
          {"tensors", tensors}},
         text, out);
  return equal ? 0 : 1;
}

}  // namespace weft
