#include "io/safetensors_header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/error.hpp"

namespace weft {

namespace {

using Json = nlohmann::json;

// Takes the object apart while it is parsed: a tree of it would take many times its bytes, and
// would have lost what came twice. Each call says whether to go on; `fault` then says why not.
class HeaderEvents final : public nlohmann::json_sax<Json> {
 public:
  std::vector<SafetensorsTensor> tensors;
  std::string fault;

  bool null() override { return no_value("null"); }
  bool boolean(bool) override { return no_value("true or false"); }
  bool number_integer(number_integer_t value) override { return no_value(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return no_value(text); }
  bool binary(binary_t&) override { return no_value("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      tensors.back().shape.push_back(value);
    } else if (place_ == Place::offsets && num_offsets_ < 2) {
      (num_offsets_++ == 0 ? tensors.back().begin : tensors.back().end) = value;
    } else {
      return no_value(std::to_string(value));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::tensor || key_ != "dtype") return no_value("a text");
    if (value == "F32") return true;
    return fail(fmt::format("the tensor {} is of dtype {}, and weft reads F32: convert it first",
                            tensors.back().name, value));
  }

  bool key(string_t& name) override {
    key_ = name;
    if (place_ == Place::metadata) return true;
    if (place_ != Place::tensor) {
      if (name == safetensors_metadata_key && std::exchange(has_metadata_, true))
        return fail("__metadata__ is there twice");
      return true;
    }
    for (std::size_t i = 0; i < 3; ++i) {
      if (name != member_names[i]) continue;
      if (has_member_[i])
        return fail(fmt::format("the tensor {} has \"{}\" twice", tensors.back().name, name));
      return has_member_[i] = true;
    }
    return fail(
        fmt::format("the tensor {} has \"{}\": expected dtype, shape and data_offsets alone",
                    tensors.back().name, name));
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::before:
        place_ = Place::names;
        return true;
      case Place::names:
        if (key_ == safetensors_metadata_key) {
          place_ = Place::metadata;
          return true;
        }
        place_ = Place::tensor;
        tensors.emplace_back().name = key_;
        std::fill(std::begin(has_member_), std::end(has_member_), false);
        num_offsets_ = 0;
        return true;
      default:
        return no_value("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::names) return true;
    if (place_ == Place::tensor) {
      for (std::size_t i = 0; i < 3; ++i) {
        if (!has_member_[i])
          return fail(
              fmt::format("the tensor {} has no \"{}\"", tensors.back().name, member_names[i]));
      }
    }
    place_ = Place::names;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") return no_value("a list");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    return true;
  }

  bool end_array() override {
    if (place_ == Place::offsets && num_offsets_ != 2)
      return fail(fmt::format("data_offsets of the tensor {} has {} numbers: expected 2",
                              tensors.back().name, num_offsets_));
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    return fail(
        fmt::format("the header is no JSON object in UTF-8: fault at byte {} of the file",
                    position + safetensors_length_bytes - std::min<std::size_t>(position, 1)));
  }

 private:
  enum class Place { before, names, metadata, tensor, shape, offsets };
  static constexpr const char* member_names[] = {"dtype", "shape", "data_offsets"};

  bool fail(std::string text) {
    fault = std::move(text);
    return false;
  }

  bool no_value(const std::string& found) {
    switch (place_) {
      case Place::before:
        return fail("the header is " + found + ": expected an object");
      case Place::names:
        return fail(fmt::format("{} is {}: expected an object", key_, found));
      case Place::metadata:
        return fail(fmt::format("__metadata__.{} is {}: expected a text", key_, found));
      default:
        return fail(fmt::format("{} of the tensor {} holds {}: expected {}", key_,
                                tensors.back().name, found,
                                key_ == "dtype" ? "a text" : "counts alone"));
    }
  }

  Place place_ = Place::before;
  std::string key_;
  bool has_metadata_ = false;
  bool has_member_[3] = {};
  int num_offsets_ = 0;
};

// Bytes of an f32 tensor; none where they do not fit 64 bits.
std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& shape) {
  std::uint64_t bytes = sizeof(float);
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

class Checker {
 public:
  Checker(std::vector<SafetensorsTensor>& tensors, std::uint64_t data_bytes,
          const std::string& path)
      : tensors_(tensors), data_bytes_(data_bytes), path_(path) {}

  void check() {
    check_names();
    std::stable_sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t position = 0;
    for (const SafetensorsTensor& tensor : tensors_) {
      check_tensor(tensor, position);
      position = tensor.end;
    }
    if (position != data_bytes_)
      fail(fmt::format("its tensors end at byte {} of {} behind the header: expected no others",
                       position, data_bytes_));
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    throw Error(ExitCode::data, path_ + ": " + text);
  }

  void check_names() const {
    std::vector<std::string_view> names;
    for (const SafetensorsTensor& tensor : tensors_) names.push_back(tensor.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) fail(fmt::format("the tensor {} is there twice", *twice));
  }

  void check_tensor(const SafetensorsTensor& tensor, std::uint64_t position) const {
    if (tensor.begin > tensor.end || tensor.end > data_bytes_)
      fail(
          fmt::format("the tensor {} is to lie at bytes {} to {} of {} behind the header: the file "
                      "is cut off or altered",
                      tensor.name, tensor.begin, tensor.end, data_bytes_));
    const auto bytes = bytes_of(tensor.shape);
    if (bytes != tensor.end - tensor.begin)
      fail(fmt::format("the tensor {} of shape [{}] has {} bytes: expected {}", tensor.name,
                       fmt::join(tensor.shape, ", "), tensor.end - tensor.begin,
                       bytes ? std::to_string(*bytes) : "less than 2^64"));
    if (tensor.begin != position)
      fail(fmt::format(
          "the tensor {} begins at byte {} behind the header, where the one before ends "
          "at {}: {}",
          tensor.name, tensor.begin, position,
          tensor.begin < position ? "they overlap" : "there is a hole"));
  }

  std::vector<SafetensorsTensor>& tensors_;
  std::uint64_t data_bytes_;
  const std::string& path_;
};

}  // namespace

std::vector<SafetensorsTensor> decode_safetensors_header(std::string_view header,
                                                         std::uint64_t data_bytes,
                                                         const std::string& path) {
  require(header.starts_with('{'), ExitCode::data,
          path + ": expected a JSON object as its header: this is no safetensors file");
  HeaderEvents events;
  if (!Json::sax_parse(header.begin(), header.end(), &events))
    throw Error(ExitCode::data, path + ": " + events.fault);
  Checker(events.tensors, data_bytes, path).check();
  return std::move(events.tensors);
}

std::string encode_safetensors_header(const std::vector<SafetensorsTensor>& tensors) {
  // As what PyTorch saves: row-major, weights [out, in]. Other programs insist on the word.
  nlohmann::ordered_json object{{safetensors_metadata_key, {{"format", "pt"}}}};
  for (const SafetensorsTensor& tensor : tensors)
    object[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {tensor.begin, tensor.end}}};
  std::string text = object.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string bytes(safetensors_length_bytes, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(std::uint64_t{text.size()} >> (8 * i) & 0xff);
  return bytes + text;
}

}  // namespace weft
