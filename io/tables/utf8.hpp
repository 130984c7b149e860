// Whether bytes are UTF-8.
#pragma once

#include <string_view>

namespace weft {

// The first byte that belongs to no character of well-formed UTF-8 (Unicode 15, table 3-7: no
// overlong forms, no surrogates, nothing above U+10FFFF); text.size() where all do.
std::size_t first_invalid_utf8(std::string_view text);

// The same of a zero byte or a byte from 0x80 on: before it nothing needs a closer look.
std::size_t first_not_plain(std::string_view text);

}  // namespace weft
