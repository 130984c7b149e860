// CRC32C (Castagnoli), the checksum of the TFRecord framing: for formats that ask for it. Our own
// checkpoints use xxHash.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

// Of the bytes, as RFC 3720 (section 12.1, appendix B.4) has it: of "123456789" 0xE3069283.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace weft
