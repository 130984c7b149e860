// The name of the machine, for messages.
#pragma once

#include <string>

namespace weft {

// "an unknown host" where the system gives none.
std::string host_name();

}  // namespace weft
